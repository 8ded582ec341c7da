package stub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveEvents changes as many objects as are asked for, and answers when the last
// change has been made, though not yet sent.
func serveEvents(w http.ResponseWriter, r *http.Request, s *store) {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || n < 0 {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "n is not a number of events")
		return
	}
	version, err := s.change(r.Context(), n)
	if err != nil {
		fail(w, http.StatusConflict, metav1.StatusReasonConflict, err.Error())
		return
	}
	fmt.Fprintln(w, version)
}

// Change makes the stub at the address host change n objects, one after the other, as
// fast as its watches read; it waits for a watch if there is none. It returns when
// the last change has been made.
func Change(ctx context.Context, host string, n int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s%s?n=%d", host, eventsPath, n), http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("events: %s: %s", res.Status, text)
	}
	return err
}
