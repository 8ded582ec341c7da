package churn

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file restores etcd. A restore can be noticed only by a client that has a version which the server does not have: if the server has passed it
// when the client compares versions, the lost history and the present one look the same. So versions grow first ([Advance]), and the subject gets
// the last ones. What happens then, until the restore, can't take them away: a watch may hang, a handler may be blocked, a type may end.

// rewind backs up etcd, makes versions grow, or restores the backup, if there is one.
func (r *run) rewind(ctx context.Context, op Op) error {
	switch {
	case r.Backup == nil || r.Restore == nil:
		return nil
	case op.Verb == Backup:
		if err := r.Backup(ctx); err != nil {
			return err
		}
		r.world.backedUp()
		return nil
	case op.Verb == Advance || !r.world.isAdvanced():
		if err := r.advance(ctx, op); err != nil || op.Verb == Advance {
			return err
		}
	}
	if !r.world.canRestore() {
		r.logf("%s is left out: the subject may not have the last versions, or lists are forbidden", op)
		return nil
	}
	r.world.restored(time.Now())
	return r.Restore(ctx)
}

// advance makes versions grow, and waits until the subject is at rest with the last ones. While a permission is revoked, a version of a type is not
// served, or a conversion fails, the subject can't get them. Without a type, versions would not grow. It may also not get them in time, for example because it does not watch after failures.
func (r *run) advance(ctx context.Context, op Op) error {
	if !r.world.canAdvance() {
		r.logf("%s is left out: there is no backup or no type, a permission is revoked, a version of a type is not served, a type ends, or a conversion fails", op)
		return nil
	}
	if err := r.writer.advance(ctx); err != nil {
		return err
	}
	for begun := time.Now(); !r.isAtRest(ctx); {
		if time.Since(begun) > advanceWithin {
			r.logf("%s is left out: the subject is not at rest after %v", op, advanceWithin)
			return nil
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	r.world.setAdvanced()
	return nil
}

// advanceWithin is how long a subject may take to get the last versions before a restore.
const advanceWithin = 10 * time.Second

// isAtRest reports whether the subject has what the servers have.
func (r *run) isAtRest(ctx context.Context) (is bool) {
	r.ofSubject(ctx, func() { is = len(r.subject.AtRest(ctx)) == 0 })
	return is
}

// canAdvance reports whether there is a backup, no permission is revoked, there is a type, and each type is served in all versions, accepts
// objects and can be converted.
func (w *World) canAdvance() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	exists := false
	for _, t := range w.types {
		if len(t.forbidden) > 0 {
			return false
		}
		if t.current < 0 || !t.incarnations[t.current].Deleted.IsZero() {
			continue
		}
		crd := t.incarnations[t.current]
		if !crd.servesAll() || crd.Terminating || crd.Webhook && t.unconverted {
			return false
		}
		exists = true
	}
	return exists && w.backup != nil
}

// setAdvanced records that the subject was at rest with versions that the server will not have soon after a restore.
func (w *World) setAdvanced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advanced = true
}

func (w *World) isAdvanced() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.advanced
}

// canRestore reports whether the subject has such versions, and can notice a restore: without lists, which a permission may forbid, it can't get the
// version of the server.
func (w *World) canRestore() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.types {
		for p := range t.forbidden {
			if p.verb == "list" {
				return false
			}
		}
	}
	return w.advanced
}

// isLike reports whether a CRD has the same versions and end as another state of it.
func (i *Incarnation) isLike(other Incarnation) bool {
	return slices.Equal(i.Served, other.Served) && i.Deleted.Equal(other.Deleted) && i.Terminating == other.Terminating
}

// Rewound reports whether a subject that is at rest must have noticed a restore of etcd by the versions of the objects of a type, if it was at rest with all
// objects at a time before: etcd was restored since then, and the CRD has not changed. Possible is false if these versions have never gone back.
func (w *World) Rewound(typ string, since time.Time) (must, possible bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	if t == nil {
		return false, false
	}
	restored := slices.ContainsFunc(t.restores, func(r restoration) bool { return r.begun.After(since) })
	return restored && !t.changed.After(since) && len(w.moves) == 0, len(t.restores) > 0 || len(w.moves) > 0
}

// restoredDefinition records that the CRD of a backup exists again, and no other one. Latest is when responses to the subject had the CRDs for the last time.
func (t *typeTruth) restoredDefinition(s saved, begun time.Time, latest map[types.UID]time.Time) {
	if s.present == nil || s.current != t.current || !t.incarnations[s.current].isLike(s.crd) {
		t.changed = begun
	}
	for i, crd := range t.incarnations {
		if crd.Deleted.IsZero() && (i != s.current || s.present == nil) {
			crd.Deleted = begun
		}
	}
	r := restoration{begun: begun}
	if s.present != nil && !t.incarnations[s.current].Deleted.IsZero() && s.crd.Deleted.IsZero() {
		r.returned = s.crd.UID
		if at := latest[r.returned]; at.After(begun) {
			r.shown = at
		}
	}
	t.restores = append(t.restores, r)
	if s.present != nil {
		t.current, *t.incarnations[s.current] = s.current, s.crd
	}
}
