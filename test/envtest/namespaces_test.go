package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// requestsIn matches requests for widgets in namespace.
func requestsIn(verb, namespace string) faultproxy.Match {
	return func(r faultproxy.Request) bool {
		return r.Verb == verb && r.Resource == widgets.Resource && r.Namespace == namespace
	}
}

// widgetRequests matches requests for widgets with one of verbs, or with any verb.
func widgetRequests(verbs ...string) faultproxy.Match {
	return func(r faultproxy.Request) bool {
		return r.Group == widgets.Group && r.Resource == widgets.Resource && (len(verbs) == 0 || slices.Contains(verbs, r.Verb))
	}
}

// keysIn returns the keys in the cache of l.
func keysIn(l *dynamicinformer.Lease) func() []string {
	return func() []string { return l.Informer().GetIndexer().ListKeys() }
}

var _ = Describe("A set of namespaces", onEachServer(func(at *apiServer) {
	It("has one list and one watch for each of 50, and lists only those that are added", func(ctx SpecContext) {
		d, admin, label := connect(at), connect(at), unique("set")
		var names, keys []string
		for i := range 51 {
			name := fmt.Sprintf("%s-%d", label, i)
			names, keys = append(names, name), append(keys, name+"/w")
			admin.create(ctx, widgets, name, newWidget("w", label))
		}
		f := d.startedFactory(dynamicinformer.WithLabelSelector("spec=" + label))
		l, err := f.Acquire(ctx, widgets, dynamicinformer.WithNamespaces(names[:50]...))
		Expect(err).NotTo(HaveOccurred())
		got := listen(l.Informer())
		Expect(l.WaitForSync(ctx)).To(Succeed())
		Eventually(keysIn(l)).Should(ConsistOf(keys[:50])) // lists may be older than some objects
		Eventually(func() int { return d.proxy.OpenWatches(widgetRequests()) }).Should(Equal(50))
		for _, name := range names[:50] {
			Expect(d.proxy.Requests(requestsIn("list", name))).To(Equal(1), name)
			Expect(d.proxy.Requests(requestsIn("watch", name))).To(Equal(1), name)
		}

		lists := d.proxy.Requests(widgetRequests("list"))
		Expect(l.SetNamespaces(names[1:]...)).To(Succeed())
		Eventually(keysIn(l)).Should(ConsistOf(keys[1:]))
		Expect(d.proxy.Requests(widgetRequests("list"))).To(Equal(lists + 1))
		Eventually(got.all).Should(ContainElements("move "+keys[0], "add "+keys[50]))

		admin.create(ctx, widgets, names[50], newWidget("later", label))
		admin.create(ctx, widgets, names[0], newWidget("later", label))
		Eventually(keysIn(l)).Should(ConsistOf(append(keys[1:], names[50]+"/later")))
		for _, past := range d.proxy.Past(widgetRequests("list", "watch")) {
			Expect(past.Namespace).NotTo(BeEmpty())
			Expect(past.Query).To(ContainSubstring("labelSelector="+url.QueryEscape("spec="+label)), "the option reaches %s", past.Verb)
		}
	})

	It("goes on in the others when requests for one fail", func(ctx SpecContext) {
		d, admin, label := connect(at), connect(at), unique("fails")
		good, bad := label+"-good", label+"-bad"
		admin.create(ctx, widgets, good, newWidget("w", label))
		admin.create(ctx, widgets, bad, newWidget("w", label))
		d.proxy.Inject(faultproxy.Namespace(bad), faultproxy.Fail(500))
		f := d.startedFactory()
		l, err := f.Acquire(ctx, widgets, dynamicinformer.WithNamespaces(good, bad))
		Expect(err).NotTo(HaveOccurred())
		Expect(l.WaitForSync(ctx)).To(Succeed())
		Eventually(keysIn(l)).Should(ConsistOf(good + "/w"))
		Eventually(l.Status).Should(HaveField("State", status.StateSynced))
		_, err = l.Lister().List(labels.Everything())
		Expect(err).To(MatchError(status.ErrIncomplete))
		d.proxy.Heal()
		Eventually(keysIn(l), "60s").Should(ConsistOf(good+"/w", bad+"/w"))
		Eventually(func() int { return d.proxy.OpenWatches(faultproxy.Namespace(bad)) }).Should(Equal(1)) // soon after the list

		d.proxy.Inject(faultproxy.Namespace(bad), faultproxy.Fail(410))
		Expect(d.proxy.CutWatches(faultproxy.Namespace(bad))).To(Equal(1))
		admin.create(ctx, widgets, bad, newWidget("meanwhile", label))
		admin.create(ctx, widgets, good, newWidget("meanwhile", label))
		Eventually(keysIn(l)).Should(ContainElement(good + "/meanwhile"))
		d.proxy.Heal()
		Eventually(keysIn(l), "60s").Should(ContainElement(bad + "/meanwhile"))
		Expect(d.proxy.Requests(requestsIn("list", good))).To(Equal(1))
		Expect(d.proxy.Requests(requestsIn("watch", good))).To(Equal(1))
	})
}))

var _ = Describe("A set of namespaces on "+kubeAPIServer.name, func() {
	It("names the namespace that RBAC forbids, and lists it when it is allowed", func(ctx SpecContext) {
		d, label := connectAsUser(unique("noah")), unique("limits")
		admin := connect(kubeAPIServer)
		allowed, forbidden := label+"-allowed", label+"-forbidden"
		admin.create(ctx, widgets, allowed, newWidget("w", label))
		admin.create(ctx, widgets, forbidden, newWidget("w", label))
		grant(ctx, d.user, allowed, widgets, "list", "watch")
		f := d.startedFactory()
		l, err := f.Acquire(ctx, widgets, dynamicinformer.WithNamespaces(allowed, forbidden, label+"-missing"))
		Expect(err).NotTo(HaveOccurred())
		Expect(l.WaitForSync(ctx)).To(Succeed())
		Eventually(keysIn(l)).Should(ConsistOf(allowed + "/w"))
		Expect(l.Status().Namespaces[1]).To(SatisfyAll(HaveField("Name", forbidden), HaveField("Listed", false), HaveField("Reason", status.ReasonForbidden)))
		Expect(f.Explain(widgets).String()).To(SatisfyAll(ContainSubstring(`Namespace "`+forbidden+`" (Forbidden`), ContainSubstring(d.user)))

		_, err = l.Lister().List(labels.Everything())
		incomplete, is := errors.AsType[*status.IncompleteError](err)
		Expect(is).To(BeTrue())
		Expect(apierrors.IsForbidden(incomplete)).To(BeTrue())
		Expect(l.Lister().ByNamespace(allowed).List(labels.Everything())).To(HaveLen(1))

		grant(ctx, d.user, forbidden, widgets, "list", "watch")
		Eventually(keysIn(l), "60s").Should(ConsistOf(allowed+"/w", forbidden+"/w"))
	})

	It("has the namespaces that RBAC allows, if all are forbidden", func(ctx SpecContext) {
		d, label := connectAsUser(unique("ruth")), unique("allows")
		admin := connect(kubeAPIServer)
		one, two, never := label+"-one", label+"-two", label+"-never"
		for _, name := range []string{one, two, never} {
			admin.create(ctx, widgets, name, newWidget("w", label))
		}
		grant(ctx, d.user, "", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "list", "watch")
		grant(ctx, d.user, one, widgets, "list", "watch")
		f := d.startedFactory()
		l, err := f.Acquire(ctx, widgets, dynamicinformer.WithAllowedNamespaces())
		Expect(err).NotTo(HaveOccurred())
		Expect(l.WaitForSync(ctx)).To(Succeed())
		Eventually(keysIn(l)).Should(ConsistOf(one + "/w"))
		all, err := l.Lister().List(labels.Everything())
		Expect(all).To(HaveLen(1))
		Expect(err).To(SatisfyAll(MatchError(status.ErrIncomplete), Satisfy(apierrors.IsForbidden)))
		incomplete, is := errors.AsType[*status.IncompleteError](err) // its text names only some of the namespaces of all specs
		Expect(is).To(BeTrue())
		Expect(incomplete.Namespaces).To(ContainElement(HaveField("Name", two)))
		Expect(l.Lister().ByNamespace(one).List(labels.Everything())).To(HaveLen(1))
		Expect(l.Unstructured(lister.WithCompleteness(nil)).List(labels.Everything())).To(HaveLen(1))
		Expect(l.Status().Namespaces).To(ConsistOf(HaveField("Name", one)))

		grant(ctx, d.user, two, widgets, "list", "watch")
		Eventually(func() []string { l.Retry(); return keysIn(l)() }, "60s", "2s").Should(ConsistOf(one+"/w", two+"/w"))
		Eventually(l.Status).Should(HaveField("State", status.StateSynced))
	})

	It("follows the labels of Namespace objects", func(ctx SpecContext) {
		d, label := connect(kubeAPIServer), unique("labels")
		one, two := label+"-one", label+"-two"
		d.create(ctx, widgets, one, newWidget("w", label))
		d.create(ctx, widgets, two, newWidget("w", label))
		relabel(ctx, d, one, label)
		f := d.startedFactory()
		l, err := f.Acquire(ctx, widgets, dynamicinformer.WithNamespaceSelector("spec="+label))
		Expect(err).NotTo(HaveOccurred())
		Expect(l.WaitForSync(ctx)).To(Succeed())
		Eventually(keysIn(l)).Should(ConsistOf(one + "/w"))
		relabel(ctx, d, two, label)
		Eventually(keysIn(l)).Should(ConsistOf(one+"/w", two+"/w"))
		relabel(ctx, d, one, "none")
		Eventually(keysIn(l)).Should(ConsistOf(two + "/w"))
		Expect(d.proxy.Requests(requestsIn("list", one))).To(Equal(1))
		Expect(d.proxy.Requests(requestsIn("list", two))).To(Equal(1))

		// No controller of this server completes the deletion.
		Expect(d.client.Resource(namespaces).Delete(ctx, two, metav1.DeleteOptions{})).To(Succeed())
		Eventually(l.Status).Should(HaveField("Namespaces", ConsistOf(SatisfyAll(HaveField("Name", two), HaveField("Terminating", true), HaveField("Listed", true)))))
		Expect(l.Status()).To(HaveField("State", status.StateSynced))
		Expect(d.client.Resource(widgets).Namespace(two).Delete(ctx, "w", metav1.DeleteOptions{})).To(Succeed())
		Eventually(keysIn(l)).Should(BeEmpty())
	})
})

// relabel sets the label of a namespace.
func relabel(ctx context.Context, d *connection, name, label string) {
	GinkgoHelper()
	client := d.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	Eventually(func() error {
		obj, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		obj.SetLabels(map[string]string{"spec": label})
		_, err = client.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	}).Should(Succeed())
}
