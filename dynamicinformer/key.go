package dynamicinformer

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/form"
)

// key identifies an entry.
type key struct {
	gvr      schema.GroupVersionResource
	versions discovery.VersionPolicy
	form     form.Form
	separate uint64 // 0: the entry is shared
}

// compare orders keys by name: group, version, resource.
func (k *key) compare(other *key) int {
	return cmp.Or(
		strings.Compare(k.gvr.Group, other.gvr.Group), strings.Compare(k.gvr.Version, other.gvr.Version),
		strings.Compare(k.gvr.Resource, other.gvr.Resource),
		strings.Compare(k.versions.String(), other.versions.String()),
		strings.Compare(k.form.String(), other.form.String()), cmp.Compare(k.separate, other.separate),
	)
}

// ofForResource is the value of key.separate for an entry that ForResource has created beside an
// entry with other options.
const ofForResource = ^uint64(0)
