package fakecluster

import (
	"fmt"
	"maps"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Backup has the objects of all types of a cluster and its resource version, at one moment. It does not change.
type Backup struct {
	version int64
	types   map[schema.GroupVersionResource]typeBackup
}

type typeBackup struct {
	served  Type
	objects map[string]*unstructured.Unstructured
}

// Backup returns a backup.
func (c *Cluster) Backup() *Backup {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &Backup{version: c.version, types: map[schema.GroupVersionResource]typeBackup{}}
	for gvr, s := range c.types {
		b.types[gvr] = typeBackup{s.Type, maps.Clone(s.objects)}
	}
	return b
}

// Restore makes the cluster what it was at the moment of b, also its resource version, as a restore of etcd does. It ends
// all watches. A watch from an earlier version is expired. One from a later version is accepted, and gets no event
// before a change has a later version.
func (c *Cluster) Restore(b *Backup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.types {
		s.closeWatches()
	}
	c.version, c.types = b.version, map[schema.GroupVersionResource]*store{}
	c.restores++
	for gvr, of := range b.types {
		s := newStore(of.served, b.version)
		s.objects = maps.Clone(of.objects)
		c.types[gvr] = s
	}
}

// newUIDLocked returns the UID of the object that is created at version: a UUID, as from an API server. Versions come again after a restore,
// and UIDs do not. The caller holds mu.
func (c *Cluster) newUIDLocked(version int64) types.UID {
	return types.UID(uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d of restore %d", version, c.restores)).String())
}

// SendBookmarks sends a bookmark to each open watch of gvr with AllowWatchBookmarks, if there was a change since the watch was
// opened. An API server does so about once a minute.
func (c *Cluster) SendBookmarks(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.types[gvr]; s != nil {
		s.bookmarks++
		s.wake()
	}
}

// bookmark returns the bookmark that is due; there may be none. The caller holds the cluster's mu.
func (w *watcher) bookmark() (event watch.Event, due bool) {
	if w.bookmarks == w.store.bookmarks {
		return watch.Event{}, false
	}
	w.bookmarks = w.store.bookmarks
	if !w.wantsBookmarks || w.cluster.version <= w.from {
		return watch.Event{}, false
	}
	mark := &unstructured.Unstructured{}
	mark.SetGroupVersionKind(w.store.GVR.GroupVersion().WithKind(w.store.Kind))
	mark.SetResourceVersion(formatVersion(w.cluster.version))
	return watch.Event{Type: watch.Bookmark, Object: mark}, true
}
