package envtest_test

import (
	"context"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// comesAndGoes creates and deletes types of a group until each has been created twice: boats, which exist, are deleted and
// created, and ships are created, deleted and created. It waits for the events of each step, and calls added, unless it is nil, when
// ships exist for the first time.
func comesAndGoes(ctx context.Context, admin *connection, group string, free *groupEvents, added func()) {
	GinkgoHelper()
	boats, ships := newCRD(group, "Boat", "v1"), newCRD(group, "Ship", "v1")
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { admin.define(ctx, ships) }, "Added ships"},
		{func() { admin.undefine(ctx, boats.GetName()) }, "Removed boats"},
		{func() { admin.undefine(ctx, ships.GetName()) }, "Removed ships"},
		{func() { admin.define(ctx, boats) }, "Added boats"},
		{func() { admin.define(ctx, ships) }, "Added ships"},
	} {
		before := len(free.addedAndRemoved())
		step.do()
		Eventually(func() []string { return shortTexts(free.addedAndRemoved()) }).Should(SatisfyAll(HaveLen(before+1), haveLast(step.want)))
		if before == 1 && added != nil {
			added()
		}
	}
}

// haveLast succeeds if last is the last element of a list of texts.
func haveLast(last string) gomegatypes.GomegaMatcher {
	return WithTransform(func(texts []string) string { return texts[len(texts)-1] }, Equal(last))
}

// shortTexts returns events as "Added ships".
func shortTexts(events []discovery.Event) (texts []string) {
	for _, event := range events {
		texts = append(texts, string(event.Type)+" "+event.Resource.GVR.Resource)
	}
	return texts
}

// of returns the short texts of the events of one type.
func of(resource string, events []discovery.Event) (texts []string) {
	for _, text := range shortTexts(events) {
		if strings.HasSuffix(text, " "+resource) {
			texts = append(texts, text)
		}
	}
	return texts
}

var _ = Describe("A listener that is blocked while types are added, removed and added", onEachServer(func(at *apiServer) {
	It("ends with the present types when it subscribes to events, in the order of each type", func(ctx SpecContext) {
		d, admin, group := connect(at), connect(at), ownGroup("busy")
		admin.define(ctx, newCRD(group, "Boat", "v1"))
		r := d.live()
		free, held := d.groupEvents(group), make(chan struct{})
		blocked := d.heldGroupEvents(group, held)
		for _, events := range []*groupEvents{free, blocked} {
			Eventually(events.texts).Should(Equal([]string{"Added boats.v1." + group}))
		}
		comesAndGoes(ctx, admin, group, free, nil)
		Expect(blocked.all()).To(HaveLen(1))
		close(held)
		Eventually(blocked.addedAndRemoved).Should(HaveLen(4))
		all := blocked.addedAndRemoved()
		Expect(of("boats", all)).To(Equal([]string{"Added boats", "Removed boats", "Added boats"}))
		Expect(of("ships", all)).To(Equal([]string{"Added ships"}), "the first addition and the deletion are merged")
		for _, event := range all[1:] {
			res, err := r.ResolveGVR(ctx, event.Resource.GVR)
			Expect(err).NotTo(HaveOccurred())
			ofNow := Equal(res.CRDUID)
			if event.Type == discovery.Removed {
				ofNow = Not(ofNow)
			}
			Expect(event.Resource.CRDUID).To(ofNow, "%v: an addition is of the CRD of now, a deletion of another one", event)
		}
		Consistently(blocked.addedAndRemoved, "500ms").Should(HaveLen(4))
	})

	It("ends with the present types when it follows them, in the order of each type", func(ctx SpecContext) {
		d, admin, group := connect(at), connect(at), ownGroup("busy")
		boats, ships := schema.GroupResource{Group: group, Resource: "boats"}.String(), schema.GroupResource{Group: group, Resource: "ships"}.String()
		admin.define(ctx, newCRD(group, "Boat", "v1"))
		free, held, f := d.groupEvents(group), make(chan struct{}), d.factory()
		recorder := &followLog{started: map[string]bool{}, held: held}
		d.followWith(f, discovery.Selector{Groups: []string{group}}, recorder)
		resume := sync.OnceFunc(func() { close(held) })
		DeferCleanup(resume) // Follow waits for its callbacks
		Eventually(func() []string { return recorder.of(boats) }).Should(Equal([]string{"start " + boats}))
		Eventually(free.texts).Should(Equal([]string{"Added boats.v1." + group}))
		comesAndGoes(ctx, admin, group, free, func() { // a type that is removed before its start has no call
			Eventually(func() []string { return recorder.of(ships) }).Should(Equal([]string{"start " + ships}), "another type is not blocked")
		})
		Expect(recorder.of(boats)).To(HaveLen(1))
		Expect(recorder.of(ships)).To(HaveLen(1))
		resume()
		for _, name := range []string{boats, ships} {
			start, end := "start "+name, "stop "+name+" CRDDeleted"
			Eventually(func() []string { return recorder.of(name) }).Should(Equal([]string{start, end, start}))
		}
		Eventually(f.Status).Should(SatisfyAll(HaveLen(2), HaveEach(HaveField("State", status.StateSynced))))
		for _, now := range f.Status() {
			res, err := d.resolver.ResolveGVR(ctx, now.GVR)
			Expect(err).NotTo(HaveOccurred())
			Expect(now.Resource.CRDUID).To(Equal(res.CRDUID))
		}
	})
}))
