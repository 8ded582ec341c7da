package trial

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ask asks for a type by RESTMapping, as clients that have objects do, and checks the
// answer.
func (t *trial) ask(of *served) error {
	mapping, err := t.mapper.RESTMapping(of.kind, of.versions...)
	if err != nil {
		return err
	}
	if mapping.Resource != of.GVR || (mapping.Scope.Name() == meta.RESTScopeNameNamespace) != of.Namespaced {
		return fmt.Errorf("%v is mapped to %v with scope %q", of.GVK, mapping.Resource, mapping.Scope.Name())
	}
	return nil
}

// askKind asks for a type by its kind in the system's own way.
func (t *trial) askKind(ctx context.Context, of *served) error {
	if t.mapper.ResolveGVK == nil {
		return t.ask(of)
	}
	got, err := t.mapper.ResolveGVK(ctx, of.GVK)
	if err == nil && got != of.GVR {
		err = fmt.Errorf("%v is resolved to %v", of.GVK, got)
	}
	return err
}

// askName asks for a type by its plural and its group in the system's own way.
func (t *trial) askName(ctx context.Context, of *served) error {
	if t.mapper.Resolve == nil {
		return t.askResource(of)
	}
	got, err := t.mapper.Resolve(ctx, of.ref)
	return of.check(got, err)
}

// askResource asks for a type by ResourceFor.
func (t *trial) askResource(of *served) error { return of.check(t.mapper.ResourceFor(of.resource)) }

// askNothing asks for a type that is not there by RESTMapping.
func (t *trial) askNothing(of *served) error {
	_, err := t.mapper.RESTMapping(of.kind, of.versions...)
	switch {
	case err == nil:
		return errors.New("it is mapped")
	case !meta.IsNoMatchError(err):
		return fmt.Errorf("no refusal: %w", err)
	}
	return nil
}

// hasName reports whether the type's plural and group name it alone. Those of the core
// group are plurals alone, which others may have, too.
func (s *served) hasName() bool { return s.GVR.Group != "" }

func (s *served) check(got schema.GroupVersionResource, err error) error {
	if err == nil && (got.Group != s.resource.Group || got.Resource != s.resource.Resource) {
		err = fmt.Errorf("%s is resolved to %v", s.ref, got)
	}
	return err
}
