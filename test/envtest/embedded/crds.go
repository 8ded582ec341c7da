package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installPoll is the time between two looks at what has become of a CRD.
const installPoll = 25 * time.Millisecond

// InstallCRDs applies crds and waits until each is Established and each of its
// served versions can be listed, which comes up to a second later: a new type's
// first requests are answered with 429. One that is there already is brought to
// the given form. It gives up when ctx ends, or at once if the server finds a CRD
// invalid or its names taken.
//
// The server delays creations of a type's objects in the first two seconds.
func (s *Server) InstallCRDs(ctx context.Context, crds ...*unstructured.Unstructured) error {
	return InstallCRDs(ctx, s.config, crds...)
}

// InstallCRDs does what the method of the same name does on any API server, the one
// that cfg reaches.
func InstallCRDs(ctx context.Context, cfg *rest.Config, crds ...*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	raw, err := rawClient(cfg)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	definitions := client.Resource(crdResource)
	for _, crd := range crds {
		if crd == nil {
			return errors.New("embedded: a CRD to install is nil")
		}
		options := metav1.ApplyOptions{FieldManager: "gvrkit-embedded", Force: true}
		if _, err := definitions.Apply(ctx, crd.GetName(), crd, options); err != nil {
			return fmt.Errorf("embedded: install CRD %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		if err := waitServed(ctx, definitions, raw, crd.GetName()); err != nil {
			return fmt.Errorf("embedded: install CRD %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// waitServed waits until the CRD called name is Established and listable.
func waitServed(ctx context.Context, definitions dynamic.ResourceInterface, raw rest.Interface, name string) error {
	var crd *unstructured.Unstructured
	err := poll(ctx, func() (done bool, err error) {
		crd, err = definitions.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if status, message := condition(crd, "NamesAccepted"); status == "False" {
			return false, fmt.Errorf("names not accepted: %s", message)
		}
		status, _ := condition(crd, "Established")
		return status == "True", nil
	})
	if err != nil {
		return err
	}
	for _, path := range listPaths(crd) {
		err := poll(ctx, func() (bool, error) {
			// resourceVersion 0 asks the watch cache, which is what comes last.
			err := raw.Get().AbsPath(path).Param("resourceVersion", "0").Param("limit", "1").MaxRetries(0).Do(ctx).Error()
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

func rawClient(cfg *rest.Config) (rest.Interface, error) {
	c := rest.CopyConfig(cfg)
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(c)
}
