package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/features"

	"github.com/gvrkit/gvrkit/internal/inflight"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// ErrEnded says that an informer has ended.
var ErrEnded = errors.New("the informer has ended")

// errNoVersion is the error of AwaitVersion without client-go's feature gate.
var errNoVersion = errors.New("client-go's store does not say which version it has, since the feature gate AtomicFIFO is off")

// storeHasVersion reports whether LastStoreSyncResourceVersion of client-go's store returns a version.
func storeHasVersion() bool { return features.FeatureGates().Enabled(features.AtomicFIFO) }

const (
	// lookEvery is the interval between looks at the store.
	lookEvery = 5 * time.Millisecond
	// askAfter is the time until the server is asked for its version. It doubles after each question.
	askAfter = 2 * time.Second
)

// AwaitVersion waits until the store has everything of the server up to version. It returns the version of the
// store. Synced reports whether the store has a list of the type that is served now. While the store is older, the
// server is asked for its version from time to time: it may have lost the version that is awaited.
func (i *Informer) AwaitVersion(ctx context.Context, version string, synced func() bool) (have string, err error) {
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		return "", status.ErrVersionInvalid
	}
	if !storeHasVersion() {
		return "", errNoVersion
	}
	w := versionWait{Informer: i, version: version, synced: synced, rewinds: i.source.State().Rewinds, generation: -1, asked: time.Now(), pause: askAfter}
	for {
		have, done, err := w.look(ctx)
		if done || err != nil {
			return have, err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return have, context.Cause(ctx)
		}
	}
}

// versionWait is one call of AwaitVersion.
type versionWait struct {
	*Informer
	version    string
	synced     func() bool
	rewinds    int // at the beginning
	generation int // of the first type that was listed and served; negative: none yet
	asked      time.Time
	pause      time.Duration // until the server is asked again
}

// look looks at the store once, and asks the server if it is time to do so.
func (w *versionWait) look(ctx context.Context) (have string, done bool, err error) {
	have = w.SharedIndexInformer.GetStore().LastStoreSyncResourceVersion()
	listed, served, now := w.listing()
	switch {
	case w.source.ListsEach():
		return "", false, status.ErrSeveralVersions
	case now.Rewinds != w.rewinds:
		return have, false, status.ErrVersionLost
	case now.Generation != w.generation && w.generation >= 0:
		return have, false, status.ErrTypeReplaced
	case listed && reaches(have, w.version) && w.isLoaded(have):
		return have, true, nil
	case w.IsStopped():
		return have, false, ErrEnded
	case listed && served && time.Since(w.asked) > w.pause:
		if server, lost := w.hasLost(ctx); lost && w.source.State().Generation == w.generation {
			return have, false, fmt.Errorf("%w; its version is %s", status.ErrVersionLost, server)
		}
		w.asked, w.pause = time.Now(), 2*w.pause
	}
	return have, false, nil
}

// listing reports whether the store has a list of the type, and whether the type is served. If it is not, the type that is served next
// may be another one, and the version may be of that.
func (w *versionWait) listing() (listed, served bool, now source.State) {
	served = w.source.IsServed()
	listed, now = w.synced(), w.source.State()
	if listed && served && w.generation < 0 {
		w.generation = now.Generation
	}
	return listed, served, now
}

// isLoaded reports whether the store, which is at version have, has all objects in the slots of the informer's shard. A list of gained slots may
// be of an earlier version than the store.
func (w *versionWait) isLoaded(have string) bool {
	last, loaded := w.source.IsLoaded(w.version)
	if !loaded || !w.source.StoresRepeated(have) {
		return false
	}
	if last == "" || !w.source.Has(last) {
		return true
	}
	_, there, err := w.SharedIndexInformer.GetStore().GetByKey(last) // after all other ones of that list
	return there || err != nil
}

// hasLost asks the server for its version, and reports whether that is before the version that is awaited.
func (w *versionWait) hasLost(ctx context.Context) (server string, lost bool) {
	ctx, cancel := context.WithTimeout(ctx, askAfter)
	defer cancel()
	server, err := w.source.ServerVersion(ctx)
	return server, err == nil && !reaches(server, w.version)
}

// reaches reports whether version is not before want.
func reaches(version, want string) bool {
	order, err := resourceversion.CompareResourceVersion(version, want)
	return err == nil && order >= 0
}

// AwaitStore waits, in a goroutine that pending counts, until the store has the first list with that number, after the reflector has got it,
// and then calls stored. HasSynced reports the list of the first generation. The objects of later lists reach the store in the order of their
// versions. If a goroutine waits for the number or a larger one, or pending is closed, AwaitStore has no effect.
func (i *Informer) AwaitStore(number int, pending *inflight.Counter, stored func(number int)) {
	for {
		last := i.awaited.Load()
		if int64(number) <= last {
			return // another goroutine waits, or no list is expected
		}
		if i.awaited.CompareAndSwap(last, int64(number)) {
			break
		}
	}
	if !pending.Begin() {
		return
	}
	go func() {
		defer pending.End()
		for !i.Stores(number) {
			<-time.After(lookEvery)
			if pending.Closed() || i.IsStopped() {
				return
			}
		}
		stored(number)
	}()
}

// Stores reports whether the store has the first list with that number, or a later list has replaced it. It
// waits for the store's lock, which an index function may delay. If the store does not say which version it has,
// Stores reports whether it has had a list.
func (i *Informer) Stores(number int) bool {
	if !storeHasVersion() {
		return i.HasSynced()
	}
	version := i.SharedIndexInformer.GetStore().LastStoreSyncResourceVersion()
	now := i.source.State()
	if now.FirstLists != number || version == now.Version {
		return true // a server's versions may decrease: the store has the last version
	}
	if notOlder(now.Former, now.Listed) { // the store may still have a version of the former generation
		return !notOlder(now.Former, version)
	}
	return notOlder(version, now.Listed)
}

// notOlder reports whether version a is not before b, or can't be compared with it. It reports false
// if a is empty, which is only the version before the first generation.
func notOlder(a, b string) bool {
	if a == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order >= 0
}
