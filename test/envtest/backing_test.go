package envtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// These specs are about types that change their server, and about types that are restored in etcd.

// shipHandler serves lists and watches of the ships of a backend. Its resource versions are greater
// than those of the other server, as those of another etcd may be.
type shipHandler struct {
	gvr schema.GroupVersionResource

	mu         sync.Mutex
	ships      []unstructured.Unstructured
	generation string
	watches    map[chan<- unstructured.Unstructured]struct{}
}

func (s *shipHandler) serves(r *http.Request) bool {
	path := "/apis/" + s.gvr.GroupVersion().String() + "/" + s.gvr.Resource
	return r.Method == http.MethodGet && r.URL.Path == path
}

// has replaces the ships by count other ships with generation as a label.
func (s *shipHandler) has(count int, generation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ships, s.generation = nil, generation
	for range count {
		s.addLocked()
	}
}

func (s *shipHandler) addLocked() unstructured.Unstructured {
	ship := newObject(s.gvr.GroupVersion().WithKind("Ship"), fmt.Sprintf("ship-%04d", len(s.ships)), len(s.ships), map[string]string{"generation": s.generation})
	ship.SetNamespace("harbor")
	ship.SetUID(types.UID(s.generation + "-" + ship.GetName()))
	s.ships = append(s.ships, *ship)
	s.ships[len(s.ships)-1].SetResourceVersion(s.versionLocked())
	return s.ships[len(s.ships)-1]
}

// watching returns the number of open watches.
func (s *shipHandler) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

// versionLocked returns the version of the list.
func (s *shipHandler) versionLocked() string { return fmt.Sprint(1_000_000_000 + len(s.ships)) }

// add adds a ship, and sends it to all watches.
func (s *shipHandler) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ship := s.addLocked()
	for watch := range s.watches {
		watch <- ship // its buffer has room for one
	}
}

func (s *shipHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": s.gvr.GroupVersion().String(), "kind": "ShipList",
		"metadata": map[string]any{"resourceVersion": s.versionLocked()}, "items": s.ships,
	})
}

// watch sends ships that are added after the request: no spec adds a ship between a list and the
// watch after it.
func (s *shipHandler) watch(w http.ResponseWriter, r *http.Request) {
	added := make(chan unstructured.Unstructured, 1)
	s.mu.Lock()
	if s.watches == nil {
		s.watches = map[chan<- unstructured.Unstructured]struct{}{}
	}
	s.watches[added] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, added)
	}()
	for {
		w.(http.Flusher).Flush()
		select {
		case ship := <-added:
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": ship.Object})
		case <-r.Context().Done():
			return
		}
	}
}

// statusObserver checks a lease continuously. While the state is Synced, the cache must have all objects
// of one type. Sizes has their number by the label of their generation.
type statusObserver struct {
	lease    *dynamicinformer.Lease
	sizes    map[string]int
	stop     func()
	seen     chan struct{} // closed after the state was Synced
	problems map[string]struct{}
}

func observeStatus(l *dynamicinformer.Lease, sizes map[string]int) *statusObserver {
	w := &statusObserver{lease: l, sizes: sizes, seen: make(chan struct{}), problems: map[string]struct{}{}}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			w.look()
			select {
			case <-time.After(2 * time.Millisecond):
			case <-stop:
				return
			}
		}
	}()
	w.stop = sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
	DeferCleanup(w.stop)
	return w
}

func (w *statusObserver) look() {
	before := w.lease.Status()
	counts := map[string]int{}
	for _, obj := range w.lease.Informer().GetStore().List() {
		counts[obj.(*unstructured.Unstructured).GetLabels()["generation"]]++
	}
	after := w.lease.Status()
	if before.State != status.StateSynced || after.State != status.StateSynced || before.Generation != after.Generation {
		return
	}
	select {
	case <-w.seen:
	default:
		close(w.seen)
	}
	for generation, count := range counts {
		if len(counts) == 1 && w.sizes[generation] == count {
			return
		}
	}
	w.problems[fmt.Sprintf("Synced, generation %d, with %v; want all objects of one of %v", after.Generation, counts, w.sizes)] = struct{}{}
}

// check waits until w has seen the state Synced, stops w, and expects no problems.
func (w *statusObserver) check() {
	GinkgoHelper()
	Eventually(w.seen).Should(BeClosed())
	w.stop()
	Expect(w.problems).To(BeEmpty())
}

// takes makes the backend serve its group, whichever server serves it now. The APIService is deleted
// at the end of the spec: without its server, discovery would be inconclusive for all later specs.
func (b *backend) takes(ctx context.Context, service string, port int) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has its own context
		_ = b.connection.client.Resource(apiServices).Delete(ctx, "v1."+b.ships.Group, metav1.DeleteOptions{}) // it may be deleted already
	})
	b.connection.patch(ctx, apiServices, "v1."+b.ships.Group, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"kube-aggregator.kubernetes.io/automanaged": nil}}, // with it, kube-apiserver would undo the change
		"spec":     behindService(b.ships.Group, service, port).Object["spec"],
	})
}

// listed returns the generation of the ships in a list.
func (b *backend) listed(ctx context.Context) func() (string, error) {
	return func() (string, error) {
		list, err := b.connection.client.Resource(b.ships).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(list.Items) == 0 {
			return "", err
		}
		return list.Items[0].GetLabels()["generation"], nil
	}
}

var _ = Describe("A type whose server changes, on "+kubeAPIServer.name, func() {
	inPlace := func(ctx context.Context, b *backend) {
		b.connection.patch(ctx, apiServices, "v1."+b.ships.Group, map[string]any{"spec": map[string]any{"service": nil, "insecureSkipTLSVerify": false}})
	}
	deleted := func(ctx context.Context, b *backend) { // kube-apiserver creates another one for the CRD
		Expect(b.connection.client.Resource(apiServices).Delete(ctx, "v1."+b.ships.Group, metav1.DeleteOptions{})).To(Succeed())
	}
	keepWatches := func(*connection, faultproxy.Match) {}
	cut := func(d *connection, of faultproxy.Match) { d.proxy.CutWatches(of) }

	DescribeTable("is followed from an aggregated server to a CRD and back",
		func(ctx SpecContext, local func(ctx context.Context, b *backend), meanwhile func(*connection, faultproxy.Match)) {
			const behind, ofCRD, again = 20, 5, 7
			d, admin := connect(kubeAPIServer), connect(kubeAPIServer)
			b, service, port := startBackendUnregistered(ctx, admin)
			crd := newCRD(b.ships.Group, "Ship", "v1")
			maker := &leasedType{connection: admin, gvr: b.ships, crd: crd, created: 1}
			admin.define(ctx, crd)
			maker.createShips(ctx, ofCRD) // its label is 1
			b.handler.has(behind, "behind")
			b.takes(ctx, service, port)
			Eventually(b.listed(ctx)).Should(Equal("behind"))

			f := d.startedFactory()
			l, err := f.Acquire(ctx, b.ships, dynamicinformer.WithAllowAbsent())
			Expect(err).NotTo(HaveOccurred())
			recorder := newEventLog(l)
			w := observeStatus(l, map[string]int{"behind": behind, "1": ofCRD, "again": again})
			Expect(l.WaitForSync(ctx)).To(Succeed())
			Eventually(recorder.addsAndDeletes).Should(Equal([2]int{behind, 0}))
			Eventually(l.Resource).Should(HaveField("Backing", discovery.BackingAggregated)) // discovery reports it after the first list
			of := faultproxy.Resource(b.ships.Group, b.ships.Resource)

			began := time.Now()
			local(ctx, b)
			Eventually(b.listed(ctx)).Should(Equal("1"))
			meanwhile(d, of)
			Eventually(recorder.addsAndDeletes).Should(Equal([2]int{behind + ofCRD, behind}))
			AddReportEntry("the CRD's objects", time.Since(began).String())
			Expect(l.WaitForSync(ctx)).To(Succeed())
			maker.resize(ctx, 1, 77)
			Eventually(recorder.changes).Should(Equal(1))

			b.handler.has(again, "again")
			began = time.Now()
			b.takes(ctx, service, port)
			Eventually(b.listed(ctx)).Should(Equal("again"))
			meanwhile(d, of)
			Eventually(recorder.addsAndDeletes).Should(Equal([2]int{behind + ofCRD + again, behind + ofCRD}))
			AddReportEntry("the aggregated server's objects", time.Since(began).String())
			Expect(l.WaitForSync(ctx)).To(Succeed())

			admin.undefine(ctx, crd.GetName()) // it no longer serves the type
			before := d.proxy.Requests(of)
			Consistently(recorder.addsAndDeletes, "3s").Should(Equal([2]int{behind + ofCRD + again, behind + ofCRD}))
			Expect(d.proxy.Requests(of)).To(BeNumerically("<=", before+3))
			Eventually(l.Status).Should(HaveField("State", status.StateSynced))
			w.check()
			Eventually(b.handler.watching).Should(Equal(1)) // a later watch would not get the ship
			b.handler.add()
			Eventually(recorder.addsAndDeletes).Should(Equal([2]int{behind + ofCRD + again + 1, behind + ofCRD}))
			recorder.check()
		},
		Entry("when its APIService is made local", NodeTimeout(3*time.Minute), inPlace, keepWatches),
		Entry("when its APIService is made local and watches are cut", NodeTimeout(3*time.Minute), inPlace, cut),
		Entry("when its APIService is deleted", NodeTimeout(3*time.Minute), deleted, keepWatches),
		Entry("when its APIService is deleted and watches are cut", NodeTimeout(3*time.Minute), deleted, cut),
	)
})

// stored is a key and its value in etcd.
type stored struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// askEtcd sends a request to the JSON interface of kubeAPIServer's etcd.
func askEtcd(ctx context.Context, method string, body, answer any) {
	GinkgoHelper()
	content, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, environment.ControlPlane.Etcd.URL.JoinPath("v3/kv", method).String(), bytes.NewReader(content))
	Expect(err).NotTo(HaveOccurred())
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }() // the body has been read
	Expect(response.StatusCode).To(Equal(http.StatusOK))
	Expect(json.NewDecoder(response.Body).Decode(answer)).To(Succeed())
}

// backUp returns all keys in etcd that begin with prefix.
func backUp(ctx context.Context, prefix string) []stored {
	GinkgoHelper()
	end := []byte(prefix)
	end[len(end)-1]++
	var answer struct {
		Pairs []stored `json:"kvs"`
	}
	askEtcd(ctx, "range", map[string]any{"key": []byte(prefix), "range_end": end}, &answer)
	Expect(answer.Pairs).NotTo(BeEmpty(), prefix)
	return answer.Pairs
}

// restore writes keys to etcd.
func restore(ctx context.Context, pairs []stored) {
	GinkgoHelper()
	for _, pair := range pairs {
		askEtcd(ctx, "put", pair, &struct{}{})
	}
}

// backUpOnKubeAPIServer leases a type with objects on kubeAPIServer. It returns a function that
// restores the type and the objects of now.
func backUpOnKubeAPIServer(ctx context.Context, objects int) (*leasedType, func(context.Context)) {
	GinkgoHelper()
	f := leaseType(ctx, kubeAPIServer, objects)
	ships := backUp(ctx, "/registry/"+f.gvr.Group+"/"+f.gvr.Resource+"/")
	definition := backUp(ctx, "/registry/"+definitions.Group+"/"+definitions.Resource+"/"+f.crd.GetName())
	Expect(ships).To(HaveLen(objects))
	return f, func(ctx context.Context) {
		GinkgoHelper()
		restore(ctx, ships)
		restore(ctx, definition)
	}
}

// backUpOnEmbeddedServer does the same on another embedded server.
func backUpOnEmbeddedServer(ctx context.Context, objects int) (*leasedType, func(context.Context)) {
	GinkgoHelper()
	server, err := embedded.Start(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	f := leaseType(ctx, &apiServer{name: embeddedServer.name, config: server.Config()}, objects)
	backup, err := server.Backup(ctx)
	Expect(err).NotTo(HaveOccurred())
	return f, func(ctx context.Context) {
		GinkgoHelper()
		Expect(server.Restore(ctx, backup)).To(Succeed())
	}
}

var _ = Describe("A CRD that is restored in etcd", func() {
	DescribeTable("is served again with its objects and their old UIDs", func(ctx SpecContext, lease func(context.Context, int) (*leasedType, func(context.Context))) {
		const ships = 20
		f, restore := lease(ctx, ships)
		name := f.crd.GetName()
		Eventually(f.lease.Resource).Should(HaveField("CRDUID", Not(BeEmpty())))
		uid := f.lease.Resource().CRDUID
		for round := 1; round <= 2; round++ {
			f.undefine(ctx, name)
			Eventually(f.status).Should(SatisfyAll(HaveField("State", status.StateNotServed), HaveField("Objects", 0)))
			Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{round * ships, round * ships}))

			w := observeStatus(f.lease, map[string]int{"1": ships})
			began := time.Now()
			restore(ctx)
			f.synced(ctx)
			Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{(round + 1) * ships, round * ships}))
			AddReportEntry("restored", time.Since(began).String())
			Eventually(f.status).Should(SatisfyAll(HaveField("State", status.StateSynced), HaveField("Generation", round), HaveField("Objects", ships)))
			Eventually(f.lease.Resource).Should(HaveField("CRDUID", uid))
			w.check()
			f.resize(ctx, 5, 100+round)
			Eventually(f.eventLog.changes).Should(Equal(5 * round))
			before := f.proxy.Requests(faultproxy.All())
			Consistently(func() int { return f.proxy.Requests(faultproxy.All()) }, "3s").Should(BeNumerically("<=", before+6))
		}
		f.eventLog.check()
	},
		Entry("on "+kubeAPIServer.name, NodeTimeout(2*time.Minute), backUpOnKubeAPIServer),
		Entry("on "+embeddedServer.name, NodeTimeout(2*time.Minute), backUpOnEmbeddedServer),
	)
})
