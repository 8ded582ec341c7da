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

// The errors of responses that no API server sends. They make a question inconclusive.
var (
	errNoGroups  = errors.New("the server lists no API group: is it a Kubernetes API server?")
	errNoList    = errors.New("the response is not a list of resources")
	errOtherList = errors.New("the response is for another group version")
	errStale     = errors.New("the server marks its response as stale: the API server behind this group version does not respond")
	errMalformed = errors.New("the response has entries without a kind or a scope")
	// errIncomplete is an error of a whole document. There may be other groups.
	errIncomplete = errors.New("the response lacks fields that every API server sends")
	// errOtherFormat is the error for a response in an unsupported format.
	errOtherFormat = errors.New("the response has an unknown format")
)

// parseAggregated reads the aggregated document of a root. If it returns groups and an error, there may
// be other groups.
func parseAggregated(body []byte) ([]groupDoc, error) {
	var doc apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoList, err)
	}
	if doc.Kind != aggregatedKind {
		return nil, fmt.Errorf("%w of groups: kind %q", errNoList, doc.Kind)
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

// protobufPrefix is the prefix of all responses of Kubernetes in protobuf.
var protobufPrefix = []byte("k8s\x00")

// In protobuf, a message is a sequence of fields. A field is a tag, which has the field's number and
// encoding, a length if the encoding has one, and the value. All fields of an APIGroupDiscoveryList
// have a length.
const (
	withLength = 2
	itemsField = 2
)

// parseProtobuf is parseAggregated for the same document in protobuf, in which an empty list and a
// missing list are the same. Groups with the same bytes as in previous are not decoded again.
func parseProtobuf(body []byte, previous []groupDoc) ([]groupDoc, error) {
	body, kubernetes := bytes.CutPrefix(body, protobufPrefix)
	if !kubernetes {
		return nil, fmt.Errorf("%w: it does not have the prefix of Kubernetes protobuf", errNoList)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoList, err)
	}
	if envelope.Kind != aggregatedKind {
		return nil, fmt.Errorf("%w of groups: kind %q", errNoList, envelope.Kind)
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
			return nil, fmt.Errorf("%w: it is not a list in protobuf", errNoList)
		}
		raw := text[:size]
		list, text = list[size:], text[size:]
		if !isGroup {
			continue
		}
		group, same := known[raw]
		if !same {
			var item apidiscovery.APIGroupDiscoveryList
			if err := item.Unmarshal([]byte(raw)); err != nil { // a list of one item
				return nil, fmt.Errorf("%w: %w", errNoList, err)
			}
			group = all.group(&item.Items[0])
		}
		group.raw = raw
		all.add(group, true)
	}
	if all.err != nil {
		for i := range all.groups { // so that the next document has the same error
			all.groups[i].raw = ""
		}
	}
	return all.groups, all.err
}

// nextField returns the size of the first field of an APIGroupDiscoveryList, 0 if it is not a field,
// and reports whether it is a group.
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
	err    error // errIncomplete if some entries are invalid
}

// add adds a group. If there are several of one name, the first one counts. HasVersions reports whether
// the entry has a list of versions, which may be empty.
func (l *groupList) add(group groupDoc, hasVersions bool) {
	if !hasVersions {
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

// group reads one item.
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

// ofRoot removes the groups that can't be below a root: only the core group has no name.
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
			version.markMalformed()
			continue
		case (entry.ResponseKind == nil || entry.ResponseKind.Kind == "") && len(entry.Verbs) == 0:
			continue // it has only subresources
		case entry.ResponseKind == nil || entry.ResponseKind.Kind == "",
			entry.Scope != apidiscovery.ScopeCluster && entry.Scope != apidiscovery.ScopeNamespace:
			version.markMalformed()
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

// kindOf returns the kind of a resource's objects, which may be of another group.
func kindOf(gv schema.GroupVersion, kind *metav1.GroupVersionKind) schema.GroupVersionKind {
	gvk := gv.WithKind(kind.Kind)
	if kind.Version != "" { // an empty group is the core group
		gvk.Group, gvk.Version = kind.Group, kind.Version
	}
	return gvk
}

// parseCore reads the legacy response of /api, which has no resources.
func parseCore(body []byte) ([]groupDoc, error) {
	var doc metav1.APIVersions
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoList, err)
	}
	if doc.Kind != "APIVersions" {
		return nil, fmt.Errorf("%w of versions: kind %q", errNoList, doc.Kind)
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
	case core.versions == nil: // the server has no core group
		return []groupDoc{}, nil
	}
	return []groupDoc{core}, nil
}

// parseGroups reads the legacy response of /apis, which has no resources.
func parseGroups(body []byte) ([]groupDoc, error) {
	var doc metav1.APIGroupList
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoList, err)
	}
	if doc.Kind != "APIGroupList" {
		return nil, fmt.Errorf("%w of groups: kind %q", errNoList, doc.Kind)
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

// preferredFirst returns the group's versions with the preferred one first.
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

// parseList reads the legacy list of the resources of one group version.
func parseList(gv schema.GroupVersion, body []byte) (versionDoc, error) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return versionDoc{}, fmt.Errorf("%w: %w", errNoList, err)
	}
	if list.Kind != "APIResourceList" {
		return versionDoc{}, fmt.Errorf("%w: kind %q", errNoList, list.Kind)
	}
	return readList(gv, &list)
}

func readList(gv schema.GroupVersion, list *metav1.APIResourceList) (versionDoc, error) {
	switch {
	case list == nil || list.GroupVersion == "" && list.APIResources == nil:
		return versionDoc{}, errNoList
	case list.GroupVersion != gv.String():
		return versionDoc{}, fmt.Errorf("%w: %q", errOtherList, list.GroupVersion)
	case list.APIResources == nil:
		return versionDoc{}, errNoList
	}
	version := versionDoc{name: gv.Version}
	subresources := map[string][]string{}
	for i := range list.APIResources {
		entry := &list.APIResources[i]
		if resource, subresource, found := strings.Cut(entry.Name, "/"); found {
			subresources[resource] = append(subresources[resource], subresource)
			continue
		}
		switch {
		case entry.Name == "", entry.Kind == "" && len(entry.Verbs) > 0:
			version.markMalformed()
			continue
		case entry.Kind == "":
			continue // it has only subresources
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
	formatOther    // an unknown aggregated format
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
		return formatLegacy // or not a document, which the parser reports
	case aggregated && (version == "v2" || version == "v2beta1"):
		return formatAggregated
	}
	return formatOther
}
