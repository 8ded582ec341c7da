package errtext_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

func TestCut_KeepsTheBeginningInWholeCharacters(t *testing.T) {
	for _, character := range []string{"a", "é", "日", "🙂"} {
		for offset := range 5 {
			text := strings.Repeat("x", offset) + strings.Repeat(character, errtext.Limit)
			got := errtext.Cut(text)
			if len(got) > errtext.Limit || len(got) < errtext.Limit-4 && len(text) > errtext.Limit || !utf8.ValidString(got) {
				t.Errorf("Cut of %d × %q: %d bytes, valid: %v", errtext.Limit, character, len(got), utf8.ValidString(got))
			}
			if len(text) > errtext.Limit && !strings.HasSuffix(got, fmt.Sprintf("… (%d bytes)", len(text))) {
				t.Errorf("Cut does not tell the length: …%s", got[len(got)-30:])
			}
		}
	}
	for _, text := range []string{"", "short", strings.Repeat("x", errtext.Limit)} {
		if got := errtext.Cut(text); got != text {
			t.Errorf("Cut(%q) = %q", text, got)
		}
	}
	if got := errtext.Cut(strings.Repeat("\x80", 2*errtext.Limit)); len(got) > errtext.Limit {
		t.Errorf("Cut of what is no UTF-8: %d bytes", len(got))
	}
}

const body = `{"kind":"Secret","data":{"password":"c2VjcmV0"}}`

// serverSaid is what client-go makes of an answer that is no Status.
func serverSaid(code int, text string) *apierrors.StatusError {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", text, 7, true)
}

func TestClean_HidesBodiesAndKeepsWhatTheErrorIs(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		is   func(error) bool
		want string
	}{
		{"a missing kind", runtime.NewMissingKindErr(body), runtime.IsMissingKind, "Object 'Kind' is missing in 'a body that is not shown'"},
		{"a missing version", runtime.NewMissingVersionErr(body), runtime.IsMissingVersion, "Object 'apiVersion' is missing in 'a body that is not shown'"},
		{"a missing kind, wrapped", fmt.Errorf("unable to decode: %w", runtime.NewMissingKindErr(body)), nil, "unable to decode: Object 'Kind' is missing in 'a body that is not shown'"},
		{"an object in the place of a Status", apierrors.FromObject(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": body}}), apierrors.IsUnexpectedObjectError, "unexpected object: &{map[apiVersion:v1 kind:Secret]}"},
		{"an object in the place of a Status, wrapped", fmt.Errorf("watch: %w", &apierrors.UnexpectedObjectError{Object: &unstructured.Unstructured{Object: map[string]any{"data": body}}}), apierrors.IsUnexpectedObjectError, "watch: unexpected object: a body that is not shown"},
		{"nothing in the place of a Status", &apierrors.UnexpectedObjectError{}, apierrors.IsUnexpectedObjectError, "unexpected object: &{map[]}"},
		{"500 with a body", serverSaid(500, body), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"403 with a body", serverSaid(403, body), apierrors.IsForbidden, "a body that is not shown"},
		{"503 with a body", serverSaid(503, " "+body), apierrors.IsServiceUnavailable, "the server is currently unable to handle the request"},
		{"500 with YAML", serverSaid(500, "metadata: {}\nkind: Secret\npassword: c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"500 with YAML that has only data", serverSaid(500, "\n  data:\n    password: c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"500 with a body in a sentence", serverSaid(500, "upstream error: "+body), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"500 with a body in a page", serverSaid(500, "<html><pre>"+body+"</pre></html>"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with the request", serverSaid(502, "GET / HTTP/1.1\r\nauthorization: Bearer c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with a token", serverSaid(502, "no such token: Bearer c2VjcmV0c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with a cookie", serverSaid(502, "Set-Cookie: c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with a password", serverSaid(502, "password=c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with an access token in a sentence", serverSaid(502, "upstream: access_token : c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with a key in a header", serverSaid(502, "X-Api-Key: c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with a quoted name", serverSaid(502, `"clientSecret": "c2VjcmV0"`), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with a map of Go", serverSaid(502, "unexpected map[user:c2VjcmV0]"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"502 with YAML of another object", serverSaid(502, "rules:\n- user: c2VjcmV0"), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"500 with a body, wrapped", fmt.Errorf("again: %w", serverSaid(500, body)), apierrors.IsInternalError, "again: an error on the server (a body that is not shown) has prevented the request from succeeding"},
		{"two bodies, joined", errors.Join(serverSaid(500, "data: "+body), fmt.Errorf("again: %w", serverSaid(403, "["+body+"]"))), apierrors.IsInternalError, "an error on the server (a body that is not shown) has prevented the request from succeeding\nagain: a body that is not shown"},
		{"a body in another one, joined", errors.Join(serverSaid(403, "{}"), serverSaid(403, "{} "+body)), apierrors.IsForbidden, "a body that is not shown\na body that is not shown"},
		{"an object before a missing kind, joined", errors.Join(&apierrors.UnexpectedObjectError{Object: &unstructured.Unstructured{Object: map[string]any{"data": body}}}, runtime.NewMissingKindErr(body)), apierrors.IsUnexpectedObjectError, "unexpected object: a body that is not shown"},
		{"a Status that quotes", apierrors.NewInternalError(runtime.NewMissingKindErr(body)), apierrors.IsInternalError, "Internal error occurred: Object 'Kind' is missing in 'a body that is not shown'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := errtext.Clean(test.err)
			if got.Error() != test.want {
				t.Errorf("text %q, want %q", got, test.want)
			}
			if test.is != nil && (!test.is(test.err) || !test.is(got)) {
				t.Errorf("%T is not what %T is", got, test.err)
			}
			if again := errtext.Clean(got); again.Error() != got.Error() {
				t.Errorf("cleaned twice: %q", again)
			}
			if status := apierrors.APIStatus(nil); errors.As(got, &status) {
				if text := fmt.Sprintf("%+v", status.Status()); strings.Contains(text, "c2VjcmV0") {
					t.Errorf("APIStatus: %s", text)
				}
				before, _ := apierrors.SuggestsClientDelay(test.err)
				if after, _ := apierrors.SuggestsClientDelay(got); before != after || apierrors.ReasonForError(got) != apierrors.ReasonForError(test.err) {
					t.Errorf("delay %d, want %d; reason %s", after, before, apierrors.ReasonForError(got))
				}
			}
			if status := (*apierrors.StatusError)(nil); errors.As(got, &status) && strings.Contains(fmt.Sprintf("%+v", status.ErrStatus), "c2VjcmV0") {
				t.Errorf("StatusError: %+v", status.ErrStatus)
			}
			if text := fmt.Sprintf("%v %+v %s", got, got, got); strings.Contains(text, "c2VjcmV0") {
				t.Errorf("printed: %s", text)
			}
		})
	}
}

func TestClean_ReturnsTheErrorItselfIfItsTextIsFit(t *testing.T) {
	for _, err := range []error{
		nil,
		io.EOF,
		fmt.Errorf("wrapped: %w", io.EOF),
		errors.New(strings.Repeat("x", errtext.Limit)),
		serverSaid(502, "<html>Bad Gateway</html>"),
		serverSaid(502, "the bearer token has expired"),
		serverSaid(502, "the password is wrong, or there is no secret with that name"),
		serverSaid(502, "Error: cannot connect\nServer: proxy"),
		serverSaid(503, "upstream connect error or disconnect/reset before headers"),
		fmt.Errorf("wrapped: %w", serverSaid(502, "connection refused")),
		apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New("not you")),
	} {
		if got := errtext.Clean(err); got != err { //nolint:errorlint // the very same
			t.Errorf("Clean(%v) = %v", err, got)
		}
	}
}

func TestClean_CutsLongTextsAndKeepsTheCause(t *testing.T) {
	long := fmt.Errorf("%s: %w", strings.Repeat("é", 20<<10), io.ErrUnexpectedEOF)
	got := errtext.Clean(long)
	if len(got.Error()) > errtext.Limit || !errors.Is(got, io.ErrUnexpectedEOF) || !errors.Is(got, long) {
		t.Errorf("%d bytes, %v", len(got.Error()), errors.Is(got, io.ErrUnexpectedEOF))
	}
	status := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError, Message: strings.Repeat("x", 1<<20),
		Details: &metav1.StatusDetails{RetryAfterSeconds: 3, Causes: []metav1.StatusCause{{Message: strings.Repeat("y", 1<<20)}}},
	}}
	cleaned := errtext.Clean(status).(*apierrors.StatusError) //nolint:errorlint // of the same type
	if n := len(cleaned.Error()) + len(cleaned.ErrStatus.Details.Causes[0].Message); n > 2*errtext.Limit {
		t.Errorf("%d bytes are left", n)
	}
	if cleaned.ErrStatus.Details.RetryAfterSeconds != 3 || !apierrors.IsInternalError(cleaned) {
		t.Errorf("%+v", cleaned.ErrStatus.Details)
	}
	if len(status.ErrStatus.Message) != 1<<20 {
		t.Error("the error itself was changed")
	}
}
