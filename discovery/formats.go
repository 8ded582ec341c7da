package discovery

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a server says that can't be true is no answer.
var (
	errNoGroups  = errors.New("the server lists no API group: is it a Kubernetes API server?")
	errNoAnswer  = errors.New("the server's answer is not a list of resources")
	errOtherList = errors.New("the server's answer is about another group version")
	errStale     = errors.New("the server marks its answer as stale: the API server behind this group version does not respond")
	errMalformed = errors.New("the server's answer has entries without a kind or a scope")
	// errIncomplete is of a whole document. There may be groups of which nothing is known.
	errIncomplete = errors.New("the server's answer lacks fields that every API server sends")
	// errOtherFormat is an answer in a format that we do not read.
	errOtherFormat = errors.New("the server's answer has an unknown format")
)

// parseAggregated reads the document that tells everything below a root. An error may
// come beside what could be read: there may be more then.
func parseAggregated(body []byte) ([]groupDoc, error) {
	var doc apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if doc.Kind != aggregatedKind {
		return nil, fmt.Errorf("%w of groups: kind %q", errNoAnswer, doc.Kind)
	}
	if doc.Items == nil {
		return nil, errIncomplete
	}
	var all groupList
	for i := range doc.Items {
		all.add(all.group(&doc.Items[i]), doc.Items[i].Versions != nil)
	}
	return all.groups, all.err
}

const aggregatedKind = "APIGroupDiscoveryList"

// protobufPrefix is what the body of every answer of Kubernetes in protobuf begins with.
var protobufPrefix = []byte("k8s\x00")

// In protobuf, a message is a sequence of fields: a tag, which has the field's number and how it
// is encoded, a length if it is encoded with one, and the value. All fields of an
// APIGroupDiscoveryList are encoded with a length.
const (
	withLength = 2
	itemsField = 2
)

// parseProtobuf is parseAggregated for the same document in protobuf, where a list that is
// empty can't be told from one that is missing. Groups that previous has, byte for byte, are
// not read again.
func parseProtobuf(body []byte, previous []groupDoc) ([]groupDoc, error) {
	body, kubernetes := bytes.CutPrefix(body, protobufPrefix)
	if !kubernetes {
		return nil, fmt.Errorf("%w: it does not begin as protobuf of Kubernetes does", errNoAnswer)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if envelope.Kind != aggregatedKind {
		return nil, fmt.Errorf("%w of groups: kind %q", errNoAnswer, envelope.Kind)
	}
	known := make(map[string]groupDoc, len(previous))
	for _, group := range previous {
		if group.raw != "" {
			known[group.raw] = group
		}
	}
	var all groupList
	list, text := envelope.Raw, string(envelope.Raw)
	for len(list) > 0 {
		size, isGroup := nextField(list)
		if size == 0 {
			return nil, fmt.Errorf("%w: it is no list in protobuf", errNoAnswer)
		}
		raw := text[:size]
		list, text = list[size:], text[size:]
		if !isGroup {
			continue
		}
		group, same := known[raw]
		if !same {
			var item apidiscovery.APIGroupDiscoveryList
			if err := item.Unmarshal([]byte(raw)); err != nil { // one of its items
				return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
			}
			group = all.group(&item.Items[0])
		}
		group.raw = raw
		all.add(group, true)
	}
	if all.err != nil {
		for i := range all.groups { // what could not be read is to be complained of the next time, too
			all.groups[i].raw = ""
		}
	}
	return all.groups, all.err
}

// nextField returns how many bytes the first field of an APIGroupDiscoveryList has, 0 if they are
// none, and whether it is a group.
func nextField(list []byte) (size int, isGroup bool) {
	tag, ofTag := binary.Uvarint(list)
	length, ofLength := binary.Uvarint(list[max(ofTag, 0):])
	head := ofTag + ofLength
	if ofTag <= 0 || ofLength <= 0 || tag&7 != withLength || length > uint64(len(list)-head) { //nolint:gosec // not negative
		return 0, false
	}
	return head + int(length), tag>>3 == itemsField //nolint:gosec // no longer than list
}

// groupList collects the groups of a document.
type groupList struct {
	groups []groupDoc
	names  map[string]bool
	err    error // errIncomplete if not all could be read
}

// add adds a group; the first of a name counts. Told says that its versions were.
func (l *groupList) add(group groupDoc, told bool) {
	if !told {
		l.err = errIncomplete
	}
	if len(group.versions) == 0 || l.names[group.name] {
		return
	}
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.names[group.name] = true
	l.groups = append(l.groups, group)
}

// group returns what item tells of a group.
func (l *groupList) group(item *apidiscovery.APIGroupDiscovery) groupDoc {
	group := groupDoc{name: item.Name}
	for i := range item.Versions {
		if item.Versions[i].Version == "" {
			l.err = errIncomplete
			continue
		}
		group.versions = append(group.versions, parseVersion(item.Name, &item.Versions[i]))
	}
	return group
}

// ofRoot returns the groups that can be below a root: only the core group has no name.
func (l *groupList) ofRoot(path string) {
	for _, group := range l.groups {
		if (group.name == "") != (path == corePath) {
			l.err = errIncomplete
		}
	}
	l.groups = slices.DeleteFunc(l.groups, func(g groupDoc) bool { return (g.name == "") != (path == corePath) })
}

func parseVersion(group string, in *apidiscovery.APIVersionDiscovery) versionDoc {
	version := versionDoc{name: in.Version}
	if in.Freshness == apidiscovery.DiscoveryFreshnessStale {
		version.err = errStale
	}
	gv := schema.GroupVersion{Group: group, Version: in.Version}
	for i := range in.Resources {
		entry := &in.Resources[i]
		switch {
		case entry.Resource == "" || strings.Contains(entry.Resource, "/"):
			version.spoilt()
			continue
		case (entry.ResponseKind == nil || entry.ResponseKind.Kind == "") && len(entry.Verbs) == 0:
			continue // nothing but subresources
		case entry.ResponseKind == nil || entry.ResponseKind.Kind == "",
			entry.Scope != apidiscovery.ScopeCluster && entry.Scope != apidiscovery.ScopeNamespace:
			version.spoilt()
			continue
		}
		res := Resource{
			GVR:        gv.WithResource(entry.Resource),
			GVK:        kindOf(gv, entry.ResponseKind),
			Singular:   entry.SingularResource,
			ShortNames: entry.ShortNames,
			Categories: entry.Categories,
			Namespaced: entry.Scope == apidiscovery.ScopeNamespace,
			Verbs:      entry.Verbs,
		}
		for j := range entry.Subresources {
			res.Subresources = append(res.Subresources, entry.Subresources[j].Subresource)
		}
		version.add(res)
	}
	return version
}

// kindOf returns the kind of a resource's objects: a few are of another group.
func kindOf(gv schema.GroupVersion, kind *metav1.GroupVersionKind) schema.GroupVersionKind {
	gvk := gv.WithKind(kind.Kind)
	if kind.Version != "" { // an empty group beside it is the core group
		gvk.Group, gvk.Version = kind.Group, kind.Version
	}
	return gvk
}

// parseCore reads the legacy answer of /api, which has no resources.
func parseCore(body []byte) ([]groupDoc, error) {
	var doc metav1.APIVersions
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if doc.Kind != "APIVersions" {
		return nil, fmt.Errorf("%w of versions: kind %q", errNoAnswer, doc.Kind)
	}
	if doc.Versions == nil {
		return nil, errIncomplete
	}
	core := groupDoc{}
	for _, version := range doc.Versions {
		if version != "" {
			core.versions = append(core.versions, versionDoc{name: version})
		}
	}
	switch {
	case len(core.versions) < len(doc.Versions):
		return nil, errIncomplete
	case core.versions == nil: // a server without a core group says so
		return []groupDoc{}, nil
	}
	return []groupDoc{core}, nil
}

// parseGroups reads the legacy answer of /apis, which has no resources.
func parseGroups(body []byte) ([]groupDoc, error) {
	var doc metav1.APIGroupList
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if doc.Kind != "APIGroupList" {
		return nil, fmt.Errorf("%w of groups: kind %q", errNoAnswer, doc.Kind)
	}
	if doc.Groups == nil {
		return nil, errIncomplete
	}
	return groupsOf(&doc)
}

func groupsOf(list *metav1.APIGroupList) ([]groupDoc, error) {
	var all groupList
	for i := range list.Groups {
		group := groupDoc{name: list.Groups[i].Name}
		for _, version := range preferredFirst(&list.Groups[i]) {
			if version == "" {
				all.err = errIncomplete
				continue
			}
			group.versions = append(group.versions, versionDoc{name: version})
		}
		all.add(group, list.Groups[i].Versions != nil)
	}
	return all.groups, all.err
}

// preferredFirst returns the group's versions, the preferred one moved to the front.
func preferredFirst(group *metav1.APIGroup) []string {
	versions := make([]string, 0, len(group.Versions))
	for _, v := range group.Versions {
		if v.Version == group.PreferredVersion.Version {
			versions = slices.Insert(versions, 0, v.Version)
		} else {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

// parseList reads the resources of one group version.
func parseList(gv schema.GroupVersion, body []byte) (versionDoc, error) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return versionDoc{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if list.Kind != "APIResourceList" {
		return versionDoc{}, fmt.Errorf("%w: kind %q", errNoAnswer, list.Kind)
	}
	return readList(gv, &list)
}

func readList(gv schema.GroupVersion, list *metav1.APIResourceList) (versionDoc, error) {
	switch {
	case list == nil || list.GroupVersion == "" && list.APIResources == nil:
		return versionDoc{}, errNoAnswer
	case list.GroupVersion != gv.String():
		return versionDoc{}, fmt.Errorf("%w: %q", errOtherList, list.GroupVersion)
	case list.APIResources == nil:
		return versionDoc{}, errNoAnswer
	}
	version := versionDoc{name: gv.Version}
	subresources := map[string][]string{}
	for i := range list.APIResources {
		entry := &list.APIResources[i]
		if resource, subresource, found := strings.Cut(entry.Name, "/"); found {
			subresources[resource] = append(subresources[resource], subresource)
			continue
		}
		if entry.Name == "" || entry.Kind == "" {
			version.spoilt()
			continue
		}
		kind := gv.WithKind(entry.Kind)
		if entry.Group != "" {
			kind.Group = entry.Group
		}
		if entry.Version != "" {
			kind.Version = entry.Version
		}
		version.add(Resource{
			GVR:        gv.WithResource(entry.Name),
			GVK:        kind,
			Singular:   entry.SingularName,
			ShortNames: entry.ShortNames,
			Categories: entry.Categories,
			Namespaced: entry.Namespaced,
			Verbs:      entry.Verbs,
		})
	}
	for i := range version.resources {
		version.resources[i].Subresources = subresources[version.resources[i].GVR.Resource]
	}
	return version, nil
}

type format int

const (
	formatLegacy format = iota
	formatAggregated
	formatProtobuf // the same in protobuf
	formatOther    // an aggregated one that is newer than this code
)

func formatOf(contentType string) format {
	media, params, err := mime.ParseMediaType(contentType)
	aggregated := params["g"] == "apidiscovery.k8s.io" && params["as"] == aggregatedKind
	switch version := params["v"]; {
	case media == runtime.ContentTypeProtobuf && aggregated && version == "v2":
		return formatProtobuf
	case media == runtime.ContentTypeProtobuf:
		return formatOther
	case err != nil || params["as"] == "":
		return formatLegacy // or none at all, which shows when it is read
	case aggregated && (version == "v2" || version == "v2beta1"):
		return formatAggregated
	}
	return formatOther
}
