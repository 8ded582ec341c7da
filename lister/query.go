package lister

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// Query selects objects by their fields, sorts them, and returns a part of them. The zero value selects all
// objects.
type Query struct {
	// Namespace limits the query to one namespace. Empty means all namespaces.
	Namespace string
	// Selector selects objects by their labels. Nil selects everything.
	Selector labels.Selector
	// Where selects objects by their fields. It has the syntax of label selectors, with paths of fields instead of
	// keys, and any text as values:
	//
	//	status.phase=Ready,spec.tier in (gold, silver),!spec.paused,spec.replicas>3
	//	status.conditions[?(@.type=="Ready")].status=True,metadata.labels.example\.com/team!="the \"A\" team"
	//
	// A path is a JSONPath as kubectl accepts it, without braces and without the operator "..", whose cost has no
	// useful limit. It has at most 4,096 bytes, and its unions, such as ['a','b'], have at most 256 combinations. A path that finds
	// nothing or null is like a key that is absent: !=, notin and ! match then. If a path has several results, =, in, > and <
	// require one that matches, and != and notin require that none equals a value. Lists and objects equal no value.
	//
	// A part of the object that a path does not fit has no result and does not affect the others: an index that a list does not
	// have, or an element whose field a filter can't compare, because it is of another type.
	//
	// A value is a text without spaces and without the characters =!,()<>", or a Go string in double quotes. A number equals
	// each text of its value (3, 3.0 and 3e0, with exponents up to 324). The order for > and < is that of SortBy, but a number
	// and a text have no order.
	Where string
	// SortBy is the path of the field by which objects are sorted. Numbers, and quantities such as "500m" and "2Gi", are first, in the order
	// of their exact values. Texts follow in the order of their bytes; false, true, and strings such as "12e5", which are often hashes, are
	// texts. Objects in which the path finds nothing, null, a list or an object are last, also if Descending. If the path has several results,
	// the first number or text counts; the results of * in an object are in the order of their names. Objects with equal
	// fields, and all objects if SortBy is empty, are in the order of namespace and name.
	SortBy string
	// Descending reverses the order of SortBy, but not that of namespace and name.
	Descending bool
	// Offset is the number of objects that are left out at the beginning, and Limit the greatest number of objects
	// to return; 0 means all.
	Offset, Limit int
}

// Result is the result of a query.
type Result struct {
	// Items are the objects from Offset on, at most Limit of them.
	Items []*unstructured.Unstructured
	// Total is the number of objects that the query selects, without Offset and Limit.
	Total int
}

// ErrQuery is matched by every [*QueryError].
var ErrQuery = errors.New("the query is not valid")

// QueryError reports a query that is not valid.
type QueryError struct {
	// Field is the field of the [Query], such as Where.
	Field string
	// Text is its value.
	Text string
	// Err says what is not valid, and where.
	Err error
}

func (e *QueryError) Error() string { return fmt.Sprintf("%s %q: %v", e.Field, e.Text, e.Err) }

// Is reports whether target is ErrQuery.
func (e *QueryError) Is(target error) bool { return target == ErrQuery }

// Unwrap returns the cause.
func (e *QueryError) Unwrap() error { return e.Err }

// Query returns the objects that q selects. It reads the cache once, in memory, and reads each object that
// the namespace and the labels select, so its cost grows with their number; an index is faster. With a packed cache, it reads the
// fields that q names, and unpacks only the objects that it returns; a path that does not begin with the name of a field unpacks all.
// If q is not valid, the error wraps a [*QueryError].
func (r *Reader) Query(q Query) (Result, error) {
	plan, err := q.plan()
	if err != nil {
		return Result{}, fmt.Errorf("lister: %s: %w", r.objects.GVR.GroupResource(), err)
	}
	incomplete := r.check(q.Namespace)
	var matches []match
	var wrong error
	if err := r.objects.Each(q.Namespace, q.Selector, func(cached any) {
		object, fields, err := r.fields(cached)
		switch {
		case err != nil:
			wrong = err
		case plan.selects(fields):
			matches = append(matches, match{cached, cache.MetaObjectToName(object), plan.sortBy.first(fields)})
		}
	}); err != nil {
		return Result{}, err
	}
	if wrong != nil {
		return Result{}, wrong
	}
	slices.SortFunc(matches, q.compare)
	result := Result{Total: len(matches)}
	from := min(q.Offset, len(matches))
	until := len(matches)
	if q.Limit > 0 {
		until = from + min(q.Limit, len(matches)-from)
	}
	for _, m := range matches[from:until] {
		object, err := r.object(m.cached)
		if err != nil {
			return Result{}, err
		}
		result.Items = append(result.Items, object)
	}
	return result, incomplete
}

// fields returns a cached object, and what a path reads. An object of a packed cache is not unpacked.
func (r *Reader) fields(cached any) (object metav1.Object, fields any, err error) {
	if r.objects.IsPacked() {
		if object, is := cached.(fielder); is {
			return object, object, nil
		}
	}
	tree, err := r.objects.Object(cached)
	if err != nil {
		return nil, nil, err
	}
	return tree, tree.Object, nil
}

// Count returns the number of objects that q selects.
func (r *Reader) Count(q Query) (int, error) {
	q.Offset, q.Limit = math.MaxInt, 0
	result, err := r.Query(q)
	return result.Total, err
}

// plan is a query that has been parsed.
type plan struct {
	where  []requirement
	sortBy path
}

func (q Query) plan() (p plan, err error) {
	for _, number := range []struct {
		field string
		n     int
	}{{"Offset", q.Offset}, {"Limit", q.Limit}} {
		if number.n < 0 {
			return p, &QueryError{number.field, fmt.Sprint(number.n), errors.New("it must not be negative")}
		}
	}
	if p.where, err = parseWhere(q.Where); err != nil {
		return p, &QueryError{"Where", q.Where, err}
	}
	if q.SortBy != "" {
		if p.sortBy, err = newPath(q.SortBy); err != nil {
			return p, &QueryError{"SortBy", q.SortBy, err}
		}
	}
	return p, nil
}

func (p *plan) selects(object any) bool {
	for _, r := range p.where {
		if !r.matches(object) {
			return false
		}
	}
	return true
}

// match is an object that a query selects.
type match struct {
	cached any
	name   cache.ObjectName
	by     *value // of SortBy; nil: none
}

// compare is the order of a query.
func (q Query) compare(a, b match) int {
	order := 0
	switch {
	case a.by != nil && b.by != nil:
		order = a.by.compare(*b.by)
		if q.Descending {
			order = -order
		}
	case a.by != nil:
		order = -1
	case b.by != nil:
		order = 1
	}
	return cmp.Or(order, cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
}
