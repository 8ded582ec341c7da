package typed

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// Such objects stand for deleted objects that the cache does not have any more.
func TestClients_ObjectsThatTheyCreateHaveTheKind(t *testing.T) {
	direct, _, err := New(NewServer(&rest.Config{}, nil, nil), gotype.Of[*corev1.Pod]{}, wire.Shared)
	if err != nil {
		t.Fatal(err)
	}
	dynamicClient, err := dynamic.NewForConfig(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []source.Client{direct, Convert(dynamicClient, gotype.Of[*corev1.Pod]{})} {
		if pod, is := client.New(corev1.SchemeGroupVersion.WithKind("Pod")).(*corev1.Pod); !is || pod.Kind != "Pod" || pod.APIVersion != "v1" {
			t.Errorf("%T creates %+v", client, pod)
		}
	}
}

// widget is a Go type for widgets.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec map[string]any `json:"spec,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object { panic("not called") }

// A response without a kind may be of any program. As a list, it would replace the cache.
func TestNew_AListNeedsAKindOrAVersion(t *testing.T) {
	s := stubserver.New(t)
	typed, _, err := New(NewServer(s.RESTConfig(), s.Client(), nil), gotype.Of[*widget]{}, wire.Shared)
	_, metadata := metadataClients(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range []string{`{}`, `{"apiVersion":"v1"}`, `{"metadata":{"name":"a"}}`, stubserver.SimilarWidget(1)} {
		for form, isList := range map[string]bool{
			`{"items":[%s]}`:                                    false,
			`{"apiVersion":"v1","items":[%s]}`:                  false,
			`{"metadata":{},"items":[%s]}`:                      false,
			`{"kind":"WidgetList","items":[%s]}`:                true,
			`{"metadata":{"resourceVersion":"9"},"items":[%s]}`: true,
		} {
			body := fmt.Sprintf(form, item)
			for name, client := range map[string]source.Client{"typed": typed, "metadata": metadata} {
				s.Prepare(stubserver.JSON(body))
				list, err := client.List(t.Context(), widgets, "", metav1.ListOptions{})
				if errors.Is(err, source.ErrNotAList) == isList || (err == nil) != isList {
					t.Errorf("%s: %s: %v, %v", name, body, list, err)
				}
			}
		}
	}
}

// Ordinary responses are decoded in one pass, all others by util/json. The results are equal.
func TestNew_DecodesAsUtilJSON(t *testing.T) {
	const unusual = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"u","labels":{"a":"1"},"labels":{"b":"2"}}}` // a field occurs twice
	const kindless = `{"metadata":{"name":"k","labels":{"a":"1"},"labels":{"b":"2"}}}`                                              // as in lists of built-in types
	objects := []string{stubserver.SimilarWidget(1), unusual, stubserver.SimilarWidget(2)}
	decoded := func(text string) *widget {
		w := &widget{}
		if err := utiljson.Unmarshal([]byte(text), w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	s := stubserver.New(t)
	client, _, err := New(NewServer(s.RESTConfig(), s.Client(), nil), gotype.Of[*widget]{}, wire.Shared)
	if err != nil {
		t.Fatal(err)
	}
	for _, items := range [][]string{{}, {objects[0], objects[2]}, objects, {kindless}} {
		s.Prepare(stubserver.JSON(stubserver.WidgetList(items...)))
		list, err := client.List(t.Context(), widgets, "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := []runtime.Object{}
		for _, item := range items {
			object := decoded(item)
			object.APIVersion, object.Kind = "example.com/v1", "Widget"
			want = append(want, object)
		}
		if diff := cmp.Diff(&internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: want}, list, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	}

	var stream string
	want := []watch.Event{}
	for _, object := range objects {
		stream += stubserver.Event("ADDED", object)
		want = append(want, watch.Event{Type: watch.Added, Object: decoded(object)})
	}
	s.Prepare(stubserver.Stream(stream + stubserver.Event("ERROR", stubserver.Refusal(410, "Expired"))))
	w, err := client.Watch(t.Context(), widgets, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for event := range w.ResultChan() {
		if len(want) == 0 {
			if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
				t.Errorf("the last event is %v %v", event.Type, err)
			}
			continue
		}
		if diff := cmp.Diff(want[0], event); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("%d events are missing", len(want))
	}
}

// sized has a field that is left out.
type sized struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size int    `json:"size"`
		Name string `json:"name"`
	} `json:"spec"`
}

func (s *sized) DeepCopyObject() runtime.Object { panic("not called") }

// A field that is left out need not fit its Go type, also if another object of the list is unusual or can't be decoded.
func TestNew_TheOthersOfAListDoNotAffectAnObject(t *testing.T) {
	const (
		object  = `{"metadata":{"name":"a"},"spec":{"size":"large","name":"x"}}`
		unusual = `{"metadata":{"name":"u","labels":{"a":"1"},"labels":{"b":"2"}},"spec":{"size":1}}` // a field occurs twice
		bad     = `{"metadata":{"name":"b"},"spec":{"name":1}}`
	)
	drop := &wire.Drop{}
	drop.Add("spec", "size")
	s := stubserver.New(t)
	client, _, err := New(NewServer(s.RESTConfig(), s.Client(), drop), gotype.Of[*sized]{}, wire.Shared)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{object, unusual, bad} {
		s.Prepare(stubserver.JSON(stubserver.WidgetList(other, object)))
		list, err := client.List(t.Context(), widgets, "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		items := list.(*internalversion.List).Items
		if _, is := items[0].(*sized); is == (other == bad) {
			t.Errorf("%s is a %T", other, items[0])
		}
		want := &sized{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		want.Spec.Name = "x"
		if diff := cmp.Diff(runtime.Object(want), items[1]); diff != "" {
			t.Errorf("beside %s (-want +got):\n%s", other, diff)
		}
	}
}

// fragile decodes its value itself, and panics if that is short.
type fragile struct{ first byte }

func (f *fragile) UnmarshalJSON(data []byte) error {
	f.first = data[8]
	return nil
}

// mode decodes its text itself, and panics if that is "bad".
type mode string

func (m *mode) UnmarshalText(text []byte) error {
	if string(text) == "bad" {
		panic("a secret: " + string(text))
	}
	*m = mode(text)
	return nil
}

// frail is a Go type with methods that panic.
type frail struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Value fragile    `json:"value"`
		Array [1]fragile `json:"array"`
		Mode  mode       `json:"mode"`
	} `json:"spec"`
}

func (f *frail) DeepCopyObject() runtime.Object { panic("not called") }

// A panic concerns one object, whose error has no values.
func TestClients_PanicOfATypeConcernsOneObject(t *testing.T) {
	const good = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"value":"long enough","array":["long enough"],"mode":"good"}}`
	for spec, method := range map[string]string{
		`{"value":"secret"}`:   "(*fragile).UnmarshalJSON",
		`{"array":["secret"]}`: "(*fragile).UnmarshalJSON",
		`{"mode":"bad"}`:       "(*mode).UnmarshalText",
	} {
		bad := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b"},"spec":` + spec + `}`
		check := func(n int, objects ...runtime.Object) {
			t.Helper()
			if len(objects) != 2*n {
				t.Fatalf("%d objects, want %d", len(objects), 2*n)
			}
			for i := 0; i < len(objects); i += 2 {
				good, isGood := objects[i].(*frail)
				bad, isBad := objects[i+1].(*undecodable.Object)
				if !isGood || good.Spec.Value.first != 'o' || good.Spec.Mode != "good" || !isBad || bad.Name != "b" {
					t.Fatalf("objects = %+v", objects[i:i+2])
				}
				if text := bad.Err.Error(); !strings.Contains(text, method+", typed_test.go:") || strings.Contains(text, "secret") {
					t.Errorf("error = %s", text)
				}
			}
		}
		s := stubserver.New(t)
		client, _, err := New(NewServer(s.RESTConfig(), s.Client(), nil), gotype.Of[*frail]{}, wire.Shared)
		if err != nil {
			t.Fatal(err)
		}
		s.Prepare(stubserver.JSON(stubserver.WidgetList(good, bad)))
		list, err := client.List(t.Context(), widgets, "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		check(1, list.(*internalversion.List).Items...)

		for _, n := range []int{1, 50} { // several goroutines decode more than 4 KB of events
			s.Prepare(stubserver.Stream(strings.Repeat(stubserver.Event("ADDED", good)+stubserver.Event("ADDED", bad), n)))
			w, err := client.Watch(t.Context(), widgets, "", metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var events []runtime.Object
			for event := range w.ResultChan() {
				events = append(events, event.Object)
			}
			check(n, events...)
		}
	}
}

// The errors of requests are those of client-go's dynamic client, with the server's message.
func TestNew_ErrorsAreThoseOfTheServer(t *testing.T) {
	s := stubserver.New(t)
	ours, _, err := New(NewServer(s.RESTConfig(), s.Client(), nil), gotype.Of[*widget]{}, wire.Own)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfigAndClient(s.RESTConfig(), s.Client())
	if err != nil {
		t.Fatal(err)
	}
	theirs := source.Unstructured(client)
	for name, reply := range map[string]stubserver.Reply{
		"status":     stubserver.Respond(500, "application/json", stubserver.Refusal(500, "StorageReadError")),
		"forbidden":  stubserver.Respond(403, "application/json", stubserver.Refusal(403, "Forbidden")),
		"expired":    stubserver.Respond(410, "application/json", stubserver.Refusal(410, "Expired")),
		"text":       stubserver.Respond(502, "text/plain", "no upstream"),
		"not JSON":   stubserver.Respond(500, "application/json", "{"),
		"no failure": stubserver.Respond(500, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Success"}`),
		"an object":  stubserver.Respond(500, "application/json", stubserver.SimilarWidget(0)),
	} {
		t.Run(name, func(t *testing.T) {
			s.Prepare(reply)
			for verb, request := range map[string]func(source.Client) error{
				"list": func(c source.Client) error {
					_, err := c.List(t.Context(), widgets, "ns", metav1.ListOptions{})
					return err
				},
				"watch": func(c source.Client) error {
					_, err := c.Watch(t.Context(), widgets, "ns", metav1.ListOptions{})
					return err
				},
			} {
				got, want := request(ours), request(theirs)
				if got == nil || want == nil || got.Error() != want.Error() || apierrors.ReasonForError(got) != apierrors.ReasonForError(want) {
					t.Errorf("%s:\n got %v\nwant %v", verb, got, want)
				}
			}
		})
	}
}
