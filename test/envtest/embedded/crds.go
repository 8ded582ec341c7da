package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installPoll is the interval between two checks of a CRD's status. Rejected is how long
// the status must say that the names are not accepted: it may be that of an earlier
// spec, or of a moment when another CRD had the names.
const (
	installPoll = 25 * time.Millisecond
	rejected    = 2 * time.Second
)

// InstallCRDs applies crds and waits until each is Established, and each of its served
// versions can be listed and is in the discovery documents, in which a busy server has it
// later. This takes up to a second, since the first requests of a new type get 429. It
// updates an existing CRD. If a CRD is being deleted, it waits until the CRD is gone, and
// creates it again. It returns an error when ctx ends, at once if a CRD is invalid, or if
// another CRD has had its names for two seconds; earlier CRDs are installed then.
//
// Objects can be created at once. Without InstallCRDs, an API server delays creations for
// two seconds after a CRD is Established; InstallCRDs sets an earlier time in that
// condition.
func (s *Server) InstallCRDs(ctx context.Context, crds ...*unstructured.Unstructured) error {
	return install(ctx, s.config, definitions(crds), (*installer).dateBack)
}

// InstallCRDs is [Server.InstallCRDs] for the API server of cfg, but it does not change
// the time of the condition Established: in the first two seconds, the creation of an
// object takes two seconds.
func InstallCRDs(ctx context.Context, cfg *rest.Config, crds ...*unstructured.Unstructured) error {
	return install(ctx, cfg, definitions(crds))
}

// definition is a CRD to install.
type definition struct {
	crd    *unstructured.Unstructured
	origin string // file and document, for errors; may be empty
}

func definitions(crds []*unstructured.Unstructured) []definition {
	all := make([]definition, len(crds))
	for i, crd := range crds {
		all[i].crd = crd
	}
	return all
}

// wrap returns err with the origin and the name of the CRD.
func (d definition) wrap(err error) error {
	if d.origin != "" {
		return fmt.Errorf("embedded: %s: install CRD %s: %w", d.origin, d.crd.GetName(), err)
	}
	return fmt.Errorf("embedded: install CRD %s: %w", d.crd.GetName(), err)
}

// installer installs CRDs on one API server.
type installer struct {
	crds      dynamic.ResourceInterface
	raw       rest.Interface
	discovery *discovery.DiscoveryClient
}

func newInstaller(cfg *rest.Config) (*installer, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	c := rest.CopyConfig(cfg)
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientForConfigAndClient(c, httpClient)
	if err != nil {
		return nil, err
	}
	documents, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &installer{crds: client.Resource(crdResource), raw: raw, discovery: documents}, nil
}

// install installs CRDs, and calls established for each CRD that is Established.
func install(ctx context.Context, cfg *rest.Config, crds []definition, established ...func(*installer, context.Context, *unstructured.Unstructured) error) error {
	i, err := newInstaller(cfg)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	for _, d := range crds {
		if d.crd == nil {
			return errors.New("embedded: a CRD to install is nil")
		}
		if err := i.waitNotTerminating(ctx, d.crd.GetName()); err != nil {
			return d.wrap(err)
		}
		options := metav1.ApplyOptions{FieldManager: "gvrkit-embedded", Force: true}
		if _, err := i.crds.Apply(ctx, d.crd.GetName(), d.crd, options); err != nil {
			return d.wrap(err)
		}
	}
	var paths []string
	for _, d := range crds {
		crd, err := i.waitEstablished(ctx, d.crd.GetName())
		for _, call := range established {
			if err == nil {
				err = call(i, ctx, crd)
			}
		}
		if err == nil {
			err = i.waitListable(ctx, crd)
		}
		if err != nil {
			return d.wrap(err)
		}
		paths = append(paths, listPaths(crd)...)
	}
	return i.waitDocumented(ctx, paths)
}

// waitNotTerminating waits until the CRD called name does not exist or is not being deleted.
func (i *installer) waitNotTerminating(ctx context.Context, name string) error {
	return poll(ctx, func() (done bool, err error) {
		crd, err := i.crds.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && crd.GetDeletionTimestamp() == nil, err
	})
}

// waitEstablished waits until the CRD called name is Established, and returns it.
func (i *installer) waitEstablished(ctx context.Context, name string) (crd *unstructured.Unstructured, err error) {
	accepted := time.Now() // when the names may have been accepted last
	err = poll(ctx, func() (done bool, err error) {
		crd, err = i.crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if status, message := condition(crd, "NamesAccepted"); status == "False" {
			if time.Since(accepted) > rejected {
				err = fmt.Errorf("names not accepted: %s", message)
			}
			return false, err
		}
		accepted = time.Now()
		status, _ := condition(crd, "Established")
		return status == "True", nil
	})
	return crd, err
}

// waitListable waits until each served version of crd can be listed.
func (i *installer) waitListable(ctx context.Context, crd *unstructured.Unstructured) error {
	for _, path := range listPaths(crd) {
		err := poll(ctx, func() (bool, error) {
			// resourceVersion 0 is served from the watch cache, which is ready last.
			err := i.raw.Get().AbsPath(path).Param("resourceVersion", "0").Param("limit", "1").MaxRetries(0).Do(ctx).Error()
			if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", path, err)
		}
	}
	return nil
}

// waitDocumented waits until the discovery documents have the resources under paths.
func (i *installer) waitDocumented(ctx context.Context, paths []string) error {
	missing := slices.Clone(paths)
	err := poll(ctx, func() (bool, error) {
		_, documents, _, err := i.discovery.GroupsAndMaybeResourcesWithContext(ctx)
		if apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		has := map[string]bool{}
		for gv, document := range documents {
			for j := range document.APIResources {
				has["/apis/"+gv.String()+"/"+document.APIResources[j].Name] = true
			}
		}
		missing = slices.DeleteFunc(missing, func(path string) bool { return has[path] })
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("embedded: wait for %q in the discovery documents: %w", missing, err)
	}
	return nil
}

// creationDelay is how long after a CRD is Established the API server delays each creation
// of its objects. The condition's time has whole seconds.
const creationDelay = 3 * time.Second

// dateBack sets an earlier time in the condition Established of crd, so that the API
// server does not delay creations.
func (i *installer) dateBack(ctx context.Context, crd *unstructured.Unstructured) error {
	name := crd.GetName()
	return poll(ctx, func() (done bool, err error) {
		conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
		if err != nil {
			return false, err
		}
		for _, c := range conditions {
			if fields, ok := c.(map[string]any); ok && fields["type"] == "Established" {
				fields["lastTransitionTime"] = time.Now().Add(-creationDelay).UTC().Format(time.RFC3339)
			}
		}
		if err := unstructured.SetNestedSlice(crd.Object, conditions, "status", "conditions"); err != nil {
			return false, err
		}
		_, err = i.crds.UpdateStatus(ctx, crd, metav1.UpdateOptions{FieldManager: "gvrkit-embedded"})
		if apierrors.IsConflict(err) { // a controller has changed it
			crd, err = i.crds.Get(ctx, name, metav1.GetOptions{})
			return false, err
		}
		return err == nil, err
	})
}

// poll calls check until it is done or fails, or ctx ends.
func poll(ctx context.Context, check func() (done bool, err error)) error {
	tick := time.NewTicker(installPoll)
	defer tick.Stop()
	for {
		if done, err := check(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// condition returns the status and message of one of crd's conditions.
func condition(crd *unstructured.Unstructured, kind string) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if ok && fields["type"] == kind {
			status, _ = fields["status"].(string)
			message, _ = fields["message"].(string)
		}
	}
	return status, message
}

// listPaths returns the paths under which crd's served versions are listed.
func listPaths(crd *unstructured.Unstructured) []string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var paths []string
	for _, v := range versions {
		fields, ok := v.(map[string]any)
		if ok && fields["served"] == true {
			paths = append(paths, fmt.Sprintf("/apis/%s/%s/%s", group, fields["name"], plural))
		}
	}
	return paths
}
