package lister

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// path finds values in an object. The zero path finds nothing.
type path struct {
	names []string        // of the fields with which the path begins
	rest  []jsonpath.Node // what follows them
}

// fielder is an object whose fields can be read without the others, such as a packed one. The values are those of unstructured objects.
type fielder interface {
	metav1.Object
	Field(names ...string) (value any, found bool)
}

func newPath(text string) (path, error) {
	s := scanner{text: text}
	p, err := s.path()
	if err == nil && s.at < len(text) {
		err = s.errorf("the path ends before this; a backslash escapes special characters")
	}
	return p, err
}

// maxPath is the maximum length of a path in bytes. jsonpath's parser calls itself for each step, so a path of some MB would overflow
// the stack, which ends the process.
const maxPath = 4 << 10

// parsePath parses a JSONPath as kubectl accepts it, without braces. It may begin with the root of the object ($), a dot, or neither.
func parsePath(text string) (p path, err error) {
	if rest, is := strings.CutPrefix(text, "$"); is && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[")) {
		text = rest
	}
	text = strings.TrimPrefix(text, ".")
	switch {
	case text == "":
		return p, errors.New("want the path of a field")
	case len(text) > maxPath:
		return p, fmt.Errorf("a path has more than %d bytes", maxPath)
	}
	action := "{." + text + "}"
	if text[0] == '[' {
		action = "{" + text + "}"
	}
	parsed, err := jsonpath.Parse("path", action)
	if err != nil {
		return p, fmt.Errorf("%q is not a valid JSONPath: %w", text, err)
	}
	nodes := parsed.Root.Nodes[0].(*jsonpath.ListNode).Nodes // the text has no other braces
	if err := (&limits{branches: 1}).check(nodes); err != nil {
		return p, err
	}
	for len(p.names) < len(nodes) {
		field, is := nodes[len(p.names)].(*jsonpath.FieldNode)
		if !is {
			break
		}
		p.names = append(p.names, field.Value)
	}
	p.rest = nodes[len(p.names):]
	return p, nil
}

// maxBranches is the maximum product of the numbers of members of all unions in a path. Each result of a union is continued with each
// member of the next one, so the product limits the cost.
const maxBranches = 256

// limits refuses paths that cost too much, and those that can't find anything.
type limits struct{ branches int }

func (l *limits) check(nodes []jsonpath.Node) error {
	for _, node := range nodes {
		if err := l.checkNode(node); err != nil {
			return err
		}
	}
	return nil
}

func (l *limits) checkNode(node jsonpath.Node) error {
	switch node := node.(type) {
	case *jsonpath.FieldNode:
		if node.Value == "" {
			return errors.New("a path has an empty name")
		}
	case *jsonpath.WildcardNode:
	case *jsonpath.ArrayNode:
		if step := node.Params[2]; step.Known && step.Value <= 0 {
			return errors.New("the step of a slice must be positive")
		}
	case *jsonpath.UnionNode:
		return l.checkUnion(node.Nodes)
	case *jsonpath.FilterNode:
		if _, known := comparisons[node.Operator]; !known && node.Operator != filterExists {
			return fmt.Errorf("a filter has no operator %s", node.Operator)
		}
		return errors.Join(l.checkSide(node.Left), l.checkSide(node.Right))
	case *jsonpath.RecursiveNode:
		return errors.New("a path that searches all levels (..) is not supported")
	case *jsonpath.IdentifierNode:
		return fmt.Errorf("%s is not a part of a path; a name follows a dot", node.Name)
	default:
		return errors.New("a path has a constant outside of a comparison")
	}
	return nil
}

func (l *limits) checkUnion(members []*jsonpath.ListNode) error {
	if l.branches *= len(members); l.branches > maxBranches {
		return fmt.Errorf("the unions of a path have more than %d combinations", maxBranches)
	}
	for _, member := range members {
		if err := l.check(member.Nodes); err != nil {
			return err
		}
	}
	return nil
}

// checkSide checks one side of a filter: a path, or a constant.
func (l *limits) checkSide(side *jsonpath.ListNode) error {
	if len(side.Nodes) == 1 {
		switch side.Nodes[0].(type) {
		case *jsonpath.TextNode, *jsonpath.IntNode, *jsonpath.FloatNode, *jsonpath.BoolNode:
			return nil
		}
	}
	return l.check(side.Nodes)
}

// find returns the scalar values at the path, and whether there is any value except null. Object is the content of an
// unstructured object, or a fielder.
func (p path) find(object any) (values []value, found bool) {
	if len(p.names)+len(p.rest) == 0 {
		return nil, false
	}
	at, there := p.begin(object)
	if !there {
		return nil, false
	}
	for _, result := range eval(p.rest, []any{at}) {
		if result == nil {
			continue
		}
		found = true
		if v, is := newValue(result); is {
			values = append(values, v)
		}
	}
	return values, found
}

// begin returns the value at the names.
func (p path) begin(object any) (at any, there bool) {
	if from, is := object.(fielder); is {
		return from.Field(p.names...)
	}
	at, there = object, true
	for _, name := range p.names {
		members, _ := at.(map[string]any)
		if at, there = members[name]; !there {
			return nil, false
		}
	}
	return at, there
}

// first returns the first value at the path, or nil.
func (p path) first(object any) *value {
	if values, _ := p.find(object); len(values) > 0 {
		return &values[0]
	}
	return nil
}

// eval returns the values at nodes, of which the first reads values. A value that a node can't read has no result, and
// does not affect the others: jsonpath's own evaluation would fail, so that an element of another type hides all elements.
func eval(nodes []jsonpath.Node, values []any) []any {
	for _, node := range nodes {
		var results []any
		if union, is := node.(*jsonpath.UnionNode); is {
			for _, member := range union.Nodes {
				results = append(results, eval(member.Nodes, values)...)
			}
		} else {
			for _, v := range values {
				results = append(results, read(node, v)...)
			}
		}
		values = results
	}
	return values
}

// read returns what a node finds in v.
func read(node jsonpath.Node, v any) []any {
	members, _ := v.(map[string]any)
	elements, _ := v.([]any)
	switch node := node.(type) {
	case *jsonpath.FieldNode:
		if member, there := members[node.Value]; there {
			return []any{member}
		}
	case *jsonpath.WildcardNode:
		if members == nil {
			return elements
		}
		all := make([]any, 0, len(members))
		for _, name := range slices.Sorted(maps.Keys(members)) { // the first result counts for SortBy
			all = append(all, members[name])
		}
		return all
	case *jsonpath.ArrayNode:
		return slice(elements, node.Params)
	case *jsonpath.FilterNode:
		return slices.DeleteFunc(slices.Clone(elements), func(element any) bool { return !passes(node, element) })
	case *jsonpath.TextNode:
		return []any{node.Text}
	case *jsonpath.IntNode:
		return []any{int64(node.Value)}
	case *jsonpath.FloatNode:
		return []any{node.Value}
	case *jsonpath.BoolNode:
		return []any{node.Value}
	}
	return nil
}

// slice returns the elements in the range of params: start, end and step. As for kubectl, a range that is not within
// the list has none.
func slice(elements []any, params [3]jsonpath.ParamsEntry) (found []any) {
	from, until, step := params[0].Value, params[1].Value, 1
	if from < 0 {
		from += len(elements)
	}
	switch {
	case !params[1].Known:
		until = len(elements)
	case until < 0, until == 0 && params[1].Derived: // derived: of the index -1
		until += len(elements)
	}
	if params[2].Known {
		step = min(params[2].Value, len(elements)+1)
	}
	if from < 0 || until > len(elements) {
		return nil
	}
	for ; from < until; from += step {
		found = append(found, elements[from])
	}
	return found
}

// filterExists is the operator of a filter that only has a path.
const filterExists = "exists"

// comparisons are the other operators of filters.
var comparisons = map[string]func(order int) bool{
	"==": func(order int) bool { return order == 0 },
	"!=": func(order int) bool { return order != 0 },
	"<":  func(order int) bool { return order < 0 },
	"<=": func(order int) bool { return order <= 0 },
	">":  func(order int) bool { return order > 0 },
	">=": func(order int) bool { return order >= 0 },
}

// passes reports whether a filter selects element. As for kubectl, the two sides must be single scalars of the same type, and strings
// have the order of their bytes.
func passes(filter *jsonpath.FilterNode, element any) bool {
	left := eval(filter.Left.Nodes, []any{element})
	if filter.Operator == filterExists {
		return len(left) > 0
	}
	right := eval(filter.Right.Nodes, []any{element})
	if len(left) != 1 || len(right) != 1 {
		return false
	}
	a, is := newValue(left[0])
	b, isToo := newValue(right[0])
	if !is || !isToo || a.quoted != b.quoted || !a.quoted && a.number.is != b.number.is {
		return false
	}
	order := 0
	switch {
	case !a.quoted && a.number.is:
		order = a.number.compare(b.number)
	case !a.quoted && strings.ContainsAny(filter.Operator, "<>"): // true and false have no order
		return false
	default:
		order = strings.Compare(a.text, b.text)
	}
	return comparisons[filter.Operator](order)
}
