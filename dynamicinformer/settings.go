package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/namespaces"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// settings are the settings of one informer.
type settings struct {
	namespace  string
	namespaces *namespaces.Choice // nil: no set
	tweak      TweakListOptionsFunc
	labels     string
	fields     string
	transform  cache.TransformFunc
	indexers   cache.Indexers
	resync     time.Duration
	jitter     bool // of resync
	removal    RemovalPolicy
	watchList  WatchListPolicy
	pageSize   int64
	strict     bool
	packed     bool
	polling    time.Duration // of types that can't be watched; 0: off
	onError    cache.WatchErrorHandlerWithContext
	shard      sharding.Shard // nil: all objects
}

// invalid returns an error if no request for gvr is possible with s, or nil. It is for ForResource and the factories of client-go's
// constructors, which return no error. It rejects only values that no client accepts, since fake clients accept more than servers do.
func (s *settings) invalid(gvr schema.GroupVersionResource) error {
	if gvr.Resource == "" {
		return discovery.CheckGVR(gvr)
	}
	if wrong := content.IsPathSegmentName(s.namespace); wrong != nil {
		return fmt.Errorf("%w: %w", source.ErrInvalid,
			&OptionError{Option: "WithNamespace", Value: s.namespace, Err: errors.New(strings.Join(wrong, ", "))})
	}
	return s.checkShard()
}

// onlyNamespaces are the indexers of an informer without WithIndexers.
var onlyNamespaces = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

// allIndexers returns the indexers of an informer. They are read-only.
func (s *settings) allIndexers() cache.Indexers {
	if len(s.indexers) == 0 {
		return onlyNamespaces
	}
	all := maps.Clone(onlyNamespaces)
	maps.Copy(all, s.indexers)
	return all
}

// config returns the configuration of the source on gvr. The client ofNamespaces lists Namespace objects.
func (s *settings) config(client, ofNamespaces source.Client, gvr schema.GroupVersionResource) source.Config {
	return source.Config{
		Client: client, Invalid: s.invalid(gvr), GVR: gvr, Namespace: s.namespace, Namespaces: s.namespaces.Set(ofNamespaces), Tweak: s.tweakAll(), KeepCache: s.removal == KeepCache,
		NoWatchList: s.watchList == WatchListNever, WatchListAnywhere: s.watchList == WatchListAnywhere,
		PageSize: s.pageSize, Strict: s.strict, Polling: s.polling,
	}
}

// verbs returns the verbs that a type must support.
func (s *settings) verbs() []string {
	if s.polling > 0 {
		return []string{source.VerbList}
	}
	return []string{source.VerbList, source.VerbWatch}
}

// tweakAll returns the function that sets selectors and applies the tweak, or nil.
func (s *settings) tweakAll() TweakListOptionsFunc {
	if s.labels == "" && s.fields == "" {
		return s.tweak
	}
	labels, fields, tweak := s.labels, s.fields, s.tweak
	return func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = labels, fields
		if tweak != nil {
			tweak(o)
		}
	}
}

// resyncPeriod returns the period of one informer, with its jitter.
func (s *settings) resyncPeriod() time.Duration {
	if !s.jitter || s.resync <= 0 {
		return s.resync
	}
	return wait.Jitter(s.resync-s.resync/10, 0.2)
}
