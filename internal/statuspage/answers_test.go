package statuspage_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

// slowReader is a browser that takes nothing until it is let.
type slowReader struct {
	*httptest.ResponseRecorder
	let <-chan struct{}
}

func (r slowReader) Write(p []byte) (int, error) {
	<-r.let
	return r.ResponseRecorder.Write(p)
}

func TestHandler_AHundredSlowBrowsersShareOneStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &informers{all: many(1000), hold: make(chan struct{})}
		handler := statuspage.NewHandler(source)
		let := make(chan struct{})
		var reading sync.WaitGroup
		browse := func() {
			for range 100 {
				reader := slowReader{httptest.NewRecorder(), let}
				reading.Go(func() {
					handler.ServeHTTP(reader, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?format=html", http.NoBody))
					if reader.Body.Len() < 100_000 {
						t.Errorf("got %d bytes", reader.Body.Len())
					}
				})
			}
			synctest.Wait()
		}
		browse()
		close(source.hold) // all have asked before the first answer is there
		synctest.Wait()
		if n := source.asked.Load(); n != 1 {
			t.Errorf("a hundred at once: asked %d times", n)
		}
		time.Sleep(499 * time.Millisecond)
		browse()
		get(t, handler, "/?state=Degraded", "application/json")
		if n := source.asked.Load(); n != 1 {
			t.Errorf("and a hundred more, and another question, within half a second: asked %d times", n)
		}
		time.Sleep(time.Millisecond)
		browse()
		if n := source.asked.Load(); n != 2 {
			t.Errorf("after half a second: asked %d times", n)
		}
		// They still read, and delay no other request.
		time.Sleep(time.Minute)
		if got := get(t, handler, "/", ""); got.Code != http.StatusOK {
			t.Errorf("beside three hundred who read: %d", got.Code)
		}
		close(let)
		reading.Wait()
	})
}

// A type that flaps a hundred times a second is looked at twice in that.
func TestHandler_FlappingCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &informers{all: many(1)}
		handler := statuspage.NewHandler(source)
		for i := range 1000 {
			source.all[0].State = []status.State{"Synced", "Degraded"}[i%2]
			if got := get(t, handler, "/", "text/html"); got.Code != http.StatusOK {
				t.Fatal(got.Code)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := source.asked.Load(); n != 20 {
			t.Errorf("in ten seconds: asked %d times, want 20", n)
		}
	})
}

// A request that ends while a response is made does not take it from the others, nor waits for it.
func TestHandler_AResponseOutlivesTheRequestThatStartsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &informers{all: many(1), hold: make(chan struct{})}
		handler := statuspage.NewHandler(source)
		codes := make(chan int, 4)
		ask := func(ctx context.Context, target string) {
			go func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody))
				codes <- w.Code
			}()
			synctest.Wait()
		}
		going, leave := context.WithCancel(t.Context())
		ask(going, "/") // starts the table
		ask(t.Context(), "/")
		ask(going, "/?q=type") // waits for the same table
		ask(t.Context(), "/?q=type")
		leave()
		for range 2 {
			if got := <-codes; got != http.StatusServiceUnavailable {
				t.Errorf("a request that has ended: %d", got)
			}
		}
		close(source.hold)
		for range 2 {
			if got := <-codes; got != http.StatusOK {
				t.Errorf("a request that waits: %d", got)
			}
		}
		if n := source.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A source that panics leaves no request waiting, and is asked again.
func TestHandler_PanicsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &informers{all: many(1)}
		broken := &panicking{informers: source, hold: make(chan struct{})}
		handler := statuspage.NewHandler(broken)
		panicked := make(chan any)
		for range 2 {
			go func() {
				defer func() { panicked <- recover() }()
				get(t, handler, "/", "")
			}()
			synctest.Wait()
		}
		close(broken.hold)
		for range 2 {
			if <-panicked == nil {
				t.Error("the panic is hidden")
			}
		}
		broken.hold = nil
		if got := get(t, handler, "/", ""); got.Code != http.StatusOK {
			t.Errorf("the next request: %d", got.Code)
		}
	})
}

type panicking struct {
	*informers
	hold chan struct{} // nil: it does not panic
}

func (p *panicking) Status() []status.Informer {
	if p.hold != nil {
		<-p.hold
		panic("broken")
	}
	return p.informers.Status()
}

// Different questions are bounded, too, in what is kept: the table is shared, and
// answers to a thousand questions are not all remembered.
func TestHandler_AThousandQueriesShareTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &informers{all: many(100)}
		handler := statuspage.NewHandler(source)
		for i := range 1000 {
			if got := get(t, handler, fmt.Sprintf("/?q=%d", i), ""); got.Code != http.StatusOK {
				t.Fatal(got.Code)
			}
		}
		if n := source.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}
