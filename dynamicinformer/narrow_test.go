package dynamicinformer_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// fewTypes answers as an API server without APIServices that has many types, t0, t1 … of group
// example.com, without objects.
func fewTypes(w http.ResponseWriter, r *http.Request) {
	const many, crds = 9, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	query := r.URL.Query()
	list := func(kind, items string) string {
		return fmt.Sprintf(`{"kind":%q,"apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, kind, items)
	}
	var resources, metas []string
	for i := range many {
		name := fmt.Sprintf("t%d", i)
		resources = append(resources, fmt.Sprintf(`{"name":%q,"singularName":"","namespaced":true,"kind":"Widget","verbs":["list","watch"]}`, name))
		if only := query.Get("fieldSelector"); only == "" || only == "metadata.name="+name+".example.com" {
			metas = append(metas, fmt.Sprintf(`{"metadata":{"name":"%s.example.com","uid":%q,"generation":1,"resourceVersion":"1"}}`, name, name))
		}
	}
	version := fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[%s]}`, strings.Join(resources, ","))
	groups := `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}]}]}`
	switch path := r.URL.Path; {
	case query.Get("sendInitialEvents") != "":
		stubserver.Respond(http.StatusUnprocessableEntity, "application/json", stubserver.Refusal(422, "Invalid"))(w, r)
	case query.Get("watch") != "":
		stubserver.SetContentType(w, "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case path == crds:
		stubserver.JSON(list("PartialObjectMetadataList", strings.Join(metas, ",")))(w, r)
	case path == "/apis":
		stubserver.JSON(groups)(w, r)
	case path == "/apis/example.com/v1":
		stubserver.JSON(version)(w, r)
	case strings.HasPrefix(path, "/apis/example.com/v1/"):
		stubserver.JSON(stubserver.WidgetList())(w, r)
	default:
		http.NotFound(w, r)
	}
}

// requestedBeforeObjects returns how many requests came before the first one for objects, and how
// many of all were for the document of all groups. Watches of CRDs are opened later, and may arrive earlier.
func requestedBeforeObjects(s *stubserver.Server) (before, ofAll int) {
	first := false
	for _, a := range s.Arrivals() {
		first = first || strings.HasPrefix(a.Path, "/apis/example.com/v1/")
		if !first && !strings.Contains(a.Query, "watch=true") {
			before++
		}
		if a.Path == "/apis" {
			ofAll++
		}
	}
	return before, ofAll
}

// eventually waits until holds returns true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// fewTest is a program with informers on some types.
type fewTest struct {
	name   string
	types  int
	leases bool // by Acquire after Start; otherwise by ForResource before
	few    bool
}

func TestFactory_AsksAboutFewTypesAlone(t *testing.T) {
	for _, test := range []fewTest{
		{"one, by Acquire", 1, true, true},
		{"one, by ForResource", 1, false, true},
		{"four, by Acquire", 4, true, true},
		{"four, by ForResource", 4, false, true},
		{"five, by Acquire", 5, true, false},
		{"five, by ForResource", 5, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 20 {
				if test.run(t) {
					return
				}
			}
			t.Error("each time, the server has not responded within a second")
		})
	}
}

// run runs the program. It reports false if the server has not responded within a second, as on a busy machine, so that the run was not narrow.
func (test fewTest) run(t *testing.T) bool {
	t.Helper()
	s, begun := stubserver.New(t), time.Now()
	s.Prepare(fewTypes)
	f, err := dynamicinformer.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer shutdown(t, f)
	if test.leases {
		f.Start(t.Context())
	}
	for i := range test.types {
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("t%d", i)}
		if !test.leases {
			f.ForResource(gvr)
		} else if _, err := f.Acquire(t.Context(), gvr); err != nil {
			t.Fatal(err)
		}
	}
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "each type has its CRD", func() bool {
		all := f.Status()
		return len(all) == test.types && !slices.ContainsFunc(all, func(now status.Informer) bool { return string(now.Resource.CRDUID) != now.GVR.Resource })
	})
	if test.few && !f.Resolver().Status().Narrow && time.Since(begun) >= time.Second {
		return false
	}
	eventually(t, "the run is narrow, or knows all types", func() bool {
		got := f.Resolver().Status()
		return got.Narrow == test.few && (got.Types == test.types || !test.few)
	})
	before, ofAll := requestedBeforeObjects(s)
	if test.few != (ofAll == 0) {
		t.Errorf("%d requests for the document of all groups", ofAll)
	}
	if test.types == 1 && before > 3 {
		t.Errorf("%d requests before the first list", before)
	}
	if !test.few && !test.leases {
		for _, a := range s.Arrivals() {
			if strings.Contains(a.Query, "fieldSelector") {
				t.Errorf("five types were known, and one was asked about: %s", a.Path)
			}
		}
	}
	return true
}

// What a program asks the resolver of its factory is answered as ever.
func TestFactory_TheResolverOfFewTypesAnswersPrograms(t *testing.T) {
	s := stubserver.New(t)
	s.Prepare(fewTypes)
	f, err := dynamicinformer.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	f.Start(t.Context())
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "t0"}
	lease, err := f.Acquire(t.Context(), gvr)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the answer has the CRD", func() bool {
		res, err := f.Resolver().Resolve(t.Context(), "t7")
		if err != nil || !slices.Equal(res.Versions, []string{"v1"}) {
			t.Fatalf("%+v, %v", res, err)
		}
		return res.CRDUID == "t7"
	})
	eventually(t, "the run is not narrow", func() bool { return !f.Resolver().Status().Narrow })
	if got := lease.Status(); got.Generation != 0 || got.State != "Synced" {
		t.Errorf("%+v", got)
	}
	if err := f.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
