package sharding

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The label and the annotations of the Leases of a group.
const (
	// GroupLabel is the label of a Lease with the Name of its group.
	GroupLabel = "sharding.gvrkit.io/group"
	// SlotsAnnotation has the slots that a member claims: those on which it acts, those that its followers have
	// not let go yet, and those for which it waits.
	SlotsAnnotation = "sharding.gvrkit.io/slots"
	// SeatAnnotation has the number of the member in its group, from 1, which determines its slots.
	SeatAnnotation = "sharding.gvrkit.io/seat"
	// LeavingAnnotation is "true" on the Lease of a member that leaves.
	LeavingAnnotation = "sharding.gvrkit.io/leaving"
	// WriteAnnotation has a random name of the process that wrote the Lease, and the number of the write.
	WriteAnnotation = "sharding.gvrkit.io/write"
)

// leaseName returns the name of the Lease of a member: any text can be an identity.
func leaseName(group, identity string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(identity)) // never fails
	return fmt.Sprintf("%s-%016x", group, hash.Sum64())
}

// newRecord returns what a Lease says. A Lease whose annotation of slots can't be read claims all slots.
func newRecord(l *coordinationv1.Lease) *record {
	r := &record{
		name: l.Name, version: l.ResourceVersion, uid: string(l.UID),
		leaving: l.Annotations[LeavingAnnotation] == "true",
	}
	if l.Spec.HolderIdentity != nil {
		r.identity = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseDurationSeconds != nil {
		r.term = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	claims, ok := parseSlots(l.Annotations[SlotsAnnotation])
	if !ok {
		claims = allSlots()
	}
	r.claims = claims
	r.seat, _ = strconv.Atoi(l.Annotations[SeatAnnotation]) // noSeat, if it can't be read
	instance, write, _ := strings.Cut(l.Annotations[WriteAnnotation], "/")
	r.instance = instance
	r.write, _ = strconv.ParseInt(write, 10, 64) // 0: of no process
	return r
}

// writeTo makes a Lease say r. The times of the Lease are for its readers: members do not compare them.
func (r *record) writeTo(l *coordinationv1.Lease, group string, now time.Time) {
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Name = r.name
	l.ResourceVersion = r.version
	l.Labels[GroupLabel] = group
	l.Annotations[SlotsAnnotation] = r.claims.String()
	l.Annotations[WriteAnnotation] = r.instance + "/" + strconv.FormatInt(r.write, 10)
	delete(l.Annotations, SeatAnnotation)
	if r.seat != noSeat {
		l.Annotations[SeatAnnotation] = strconv.Itoa(r.seat)
	}
	delete(l.Annotations, LeavingAnnotation)
	if r.leaving {
		l.Annotations[LeavingAnnotation] = "true"
	}
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != r.identity {
		l.Spec.HolderIdentity = &r.identity
		l.Spec.AcquireTime = &metav1.MicroTime{Time: now}
	}
	l.Spec.RenewTime = &metav1.MicroTime{Time: now}
	l.Spec.LeaseDurationSeconds = nil // zero, of a Lease that another program has changed, is invalid
	if r.term > 0 {
		l.Spec.LeaseDurationSeconds = new(int32(r.term / time.Second))
	}
}
