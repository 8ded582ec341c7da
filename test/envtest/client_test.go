package envtest_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicclient"
)

// pair has client-go's dynamic client and gvrkit's on one connection, without a proxy: they use TLS,
// HTTP/2, and gzip for large responses.
type pair struct{ stock, fast dynamic.Interface }

func openPair(at *apiServer, opts ...dynamicclient.Option) pair {
	GinkgoHelper()
	client, err := rest.HTTPClientFor(at.config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(client.CloseIdleConnections)
	stock, err := dynamic.NewForConfigAndClient(at.config, client)
	Expect(err).NotTo(HaveOccurred())
	fast, err := dynamicclient.NewForHTTPClient(at.config, client, opts...)
	Expect(err).NotTo(HaveOccurred())
	return pair{stock, fast}
}

// answer is the result of a request.
type answer struct {
	of  any
	err error
}

// alike sends a read request with both clients, expects equal answers, and returns the answer. The
// server may write in the meantime, and each list has the newest version. Therefore alike repeats
// the requests until client-go's answers before and after that of gvrkit are equal.
func (p pair) alike(do func(client dynamic.Interface) (any, error)) answer {
	GinkgoHelper()
	ask := func(client dynamic.Interface) answer {
		of, err := do(client)
		return answer{of, err}
	}
	var before, got, after answer
	Eventually(func() bool {
		before, got, after = ask(p.stock), ask(p.fast), ask(p.stock)
		return reflect.DeepEqual(before, after)
	}).Should(BeTrue(), "two equal answers of client-go")
	Expect(got).To(Equal(after))
	return got
}

// reads is alike for a request that succeeds, and fails for a request that fails.
func (p pair) reads(do func(client dynamic.Interface) (any, error)) {
	GinkgoHelper()
	Expect(p.alike(do).err).NotTo(HaveOccurred())
}

func (p pair) fails(do func(client dynamic.Interface) (any, error)) {
	GinkgoHelper()
	Expect(p.alike(do).err).To(HaveOccurred())
}

// listed returns all pages of a list.
func listed(ctx context.Context, client dynamic.ResourceInterface, opts metav1.ListOptions) ([]*unstructured.UnstructuredList, error) {
	var pages []*unstructured.UnstructuredList
	for {
		page, err := client.List(ctx, opts)
		if err != nil {
			return pages, err
		}
		opts.Continue = page.GetContinue()
		page.SetContinue("") // it depends on the time
		pages = append(pages, page)
		if opts.Continue == "" {
			return pages, nil
		}
	}
}

// initial returns the initial events of a watch-list.
func initial(ctx context.Context, client dynamic.ResourceInterface, selector string) ([]watch.Event, error) {
	w, err := client.Watch(ctx, metav1.ListOptions{
		LabelSelector: selector, SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var events []watch.Event
	for event := range w.ResultChan() {
		if event.Type == watch.Bookmark {
			return events, nil // without the bookmark, whose resourceVersion changes
		}
		events = append(events, event)
	}
	return events, fmt.Errorf("the watch ended after %d events", len(events))
}

var _ = Describe("The fast client", onEachServer(func(at *apiServer) {
	It("reads the same objects as client-go's client", func(ctx SpecContext) {
		d, p, label := connect(at), openPair(at), unique("parity")
		for i := range 120 {
			block := newBlock(fmt.Sprintf("%s-%03d", label, i), label)
			block.SetAnnotations(map[string]string{"large": fmt.Sprintf("%01000d <&> \u00e9\u2028", i)}) // large enough for compression
			d.create(ctx, blocks, "", block)
		}
		selected := metav1.ListOptions{LabelSelector: "spec=" + label}
		pages := metav1.ListOptions{LabelSelector: "spec=" + label, Limit: 50}
		p.reads(func(c dynamic.Interface) (any, error) {
			return c.Resource(blocks).Get(ctx, label+"-007", metav1.GetOptions{})
		})
		p.reads(func(c dynamic.Interface) (any, error) { return listed(ctx, c.Resource(blocks), selected) })
		p.reads(func(c dynamic.Interface) (any, error) { return listed(ctx, c.Resource(blocks), pages) })
		p.reads(func(c dynamic.Interface) (any, error) { return initial(ctx, c.Resource(blocks), "spec="+label) })
		p.reads(func(c dynamic.Interface) (any, error) {
			return listed(ctx, c.Resource(blocks), metav1.ListOptions{LabelSelector: "spec=none"})
		})
		if at.whole {
			for _, gvr := range []schema.GroupVersionResource{namespaces, {Version: "v1", Resource: "services"}, {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, rbac.WithResource("clusterroles")} {
				p.reads(func(c dynamic.Interface) (any, error) { return listed(ctx, c.Resource(gvr), metav1.ListOptions{}) })
				p.reads(func(c dynamic.Interface) (any, error) { return initial(ctx, c.Resource(gvr), "") })
			}
		}
	})

	It("returns the same errors as client-go's client", func(ctx SpecContext) {
		p := openPair(at)
		p.fails(func(c dynamic.Interface) (any, error) {
			return c.Resource(blocks).Get(ctx, "none", metav1.GetOptions{})
		})
		p.fails(func(c dynamic.Interface) (any, error) {
			return c.Resource(blocks.GroupVersion().WithResource("nothings")).List(ctx, metav1.ListOptions{})
		})
		p.fails(func(c dynamic.Interface) (any, error) {
			return c.Resource(blocks).List(ctx, metav1.ListOptions{Continue: "garbage"})
		})
		p.fails(func(c dynamic.Interface) (any, error) {
			return c.Resource(blocks).Watch(ctx, metav1.ListOptions{ResourceVersion: "garbage"})
		})
		p.fails(func(c dynamic.Interface) (any, error) {
			return c.Resource(blocks).Create(ctx, &unstructured.Unstructured{Object: map[string]any{"kind": "IPAMBlock", "apiVersion": "crd.projectcalico.org/v1"}}, metav1.CreateOptions{})
		})
	})

	It("writes, and its objects can be changed and written back", func(ctx SpecContext) {
		p, label := openPair(at), unique("writes")
		client := p.fast.Resource(blocks)
		created, err := client.Create(ctx, newBlock(label, label), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_ = client.Delete(ctx, label, metav1.DeleteOptions{})
		})
		Expect(unstructured.SetNestedField(created.Object, "host:node-b", "spec", "affinity")).To(Succeed())
		updated, err := client.Update(ctx, created, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = client.Update(ctx, created, metav1.UpdateOptions{})
		Expect(err).To(MatchError(ContainSubstring("the object has been modified")))
		patched, err := client.Patch(ctx, label, types.MergePatchType, []byte(`{"spec":{"cidr":"192.0.2.4/30"}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(patched.GetResourceVersion()).NotTo(Equal(updated.GetResourceVersion()))
		applied := newBlock(label, label)
		_, err = client.Apply(ctx, label, applied, metav1.ApplyOptions{FieldManager: "spec", Force: true})
		Expect(err).NotTo(HaveOccurred())
		p.reads(func(c dynamic.Interface) (any, error) { return c.Resource(blocks).Get(ctx, label, metav1.GetOptions{}) })
		Expect(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "spec=" + label})).To(Succeed())
		p.fails(func(c dynamic.Interface) (any, error) { return c.Resource(blocks).Get(ctx, label, metav1.GetOptions{}) })
	})

	It("leaves out the fields of WithoutFields", func(ctx SpecContext) {
		d, p, label := connect(at), openPair(at, dynamicclient.WithoutManagedFields(), dynamicclient.WithSharing()), unique("without")
		for i := range 10 {
			d.create(ctx, blocks, "", newBlock(fmt.Sprintf("%s-%d", label, i), label))
		}
		p.reads(func(c dynamic.Interface) (any, error) {
			list, err := c.Resource(blocks).List(ctx, metav1.ListOptions{LabelSelector: "spec=" + label})
			if err != nil || c == p.fast {
				return list, err
			}
			for i := range list.Items {
				Expect(list.Items[i].GetManagedFields()).NotTo(BeEmpty())
				unstructured.RemoveNestedField(list.Items[i].Object, "metadata", "managedFields")
			}
			return list, nil
		})
	})
}))

// asTable requests tables, as kubectl does.
type asTable struct{ next http.RoundTripper }

func (a asTable) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	return a.next.RoundTrip(r)
}

var _ = Describe("The fast client with tables", onEachServer(func(at *apiServer) {
	It("reads them as client-go's client does", func(ctx SpecContext) {
		d, label := connect(at), unique("table")
		d.create(ctx, blocks, "", newBlock(label, label))
		config := rest.CopyConfig(at.config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return asTable{next} })
		p := openPair(&apiServer{config: config})
		p.reads(func(c dynamic.Interface) (any, error) {
			table, err := c.Resource(blocks).Get(ctx, label, metav1.GetOptions{})
			if err == nil {
				Expect(table.GetKind()).To(Equal("Table"))
				delete(table.Object, "rows") // a row has an age, which changes
			}
			return runtime.Object(table), err
		})
	})
}))
