package discovery_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The budget of a question whose answer is known.
func TestRun_KnownTypesAllocateAlmostNothing(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	r := run(t, s, never())
	ctx := t.Context()
	for name, ask := range map[string]func() error{
		"Resolve":    func() error { _, err := r.Resolve(ctx, "gadgets.v1.example.org"); return err },
		"ResolveGVR": func() error { _, err := r.ResolveGVR(ctx, gadgets); return err },
		"ResolveGVK": func() error { _, err := r.ResolveGVK(ctx, gadgets.GroupVersion().WithKind("Gadget")); return err },
		"RESTMapping": func() error {
			_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v1")
			return err
		},
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() { _ = ask() }); got > 1 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	groups := everything()
	groups = append(groups, group{name: "example.org", versions: []version{{name: "v1"}}})
	s := newServer(b, aggregated, groups...)
	s.collections(b, newCollection(define(gadgetsCRD, "1").object()), nil)
	r := run(b, s, never())
	ctx := b.Context()
	m := r.RESTMapper()
	for _, bench := range []struct {
		name string
		ask  func() error
	}{
		{"Resolve", func() error { _, err := r.Resolve(ctx, "gadgets.v1.example.org"); return err }},
		{"ResolveGVR", func() error { _, err := r.ResolveGVR(ctx, gadgets); return err }},
		{"RESTMapping", func() error {
			_, err := m.RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v1")
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
