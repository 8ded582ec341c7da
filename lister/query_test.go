package lister_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/jsonpath"

	"github.com/gvrkit/gvrkit/lister"
)

// parsed returns an object with the content in JSON.
func parsed(tb testing.TB, namespace, name, content string) *unstructured.Unstructured {
	tb.Helper()
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(content), &object.Object); err != nil {
		tb.Fatalf("%s: %v", content, err)
	}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// ships returns a reader of some objects.
func ships(tb testing.TB) *lister.Reader {
	tb.Helper()
	return lister.NewReader(newIndexer(tb, crew(tb)...), widgets)
}

// crew returns the objects of ships.
func crew(tb testing.TB) []any {
	tb.Helper()
	return []any{
		parsed(tb, "ns", "a", `{"spec":{"tier":"gold","crew":3,"load":"500m","decks":[{"name":"upper","guns":4},{"name":"lower"}],"fast":true,"x=y":"z"},
			"metadata":{"labels":{"example.com/team":"the \"A\" team","app":"a"}}}`),
		parsed(tb, "ns", "b", `{"spec":{"tier":"silver","crew":12,"load":"2","fast":false,"home":null,"decks":[]}}`),
		parsed(tb, "other", "c", `{"spec":{"tier":"","crew":3.5,"load":"1Ki","serial":9007199254740993,"home":{"port":"10.0.0.0/26"}}}`),
		parsed(tb, "", "d", `{"spec":{"tier":"gold","crew":"many","load":"heavy","serial":9007199254740992,"home":"in, out"}}`),
	}
}

func TestQuery_Where(t *testing.T) {
	t.Run("trees", func(t *testing.T) { testWhere(t, ships(t)) })
	t.Run("packed", func(t *testing.T) { testWhere(t, lister.NewReader(newPacked(t, crew(t)...), widgets)) })
}

func testWhere(t *testing.T, r *lister.Reader) {
	t.Helper()
	for where, want := range map[string]string{
		"":                                         "a b c d",
		" ":                                        "a b c d",
		"spec.tier":                                "a b c d",
		".spec.tier=gold":                          "a d",
		"spec.tier==gold , spec.crew=3":            "a",
		"spec.tier!=gold":                          "b c",
		"spec.tier=":                               "c",
		`spec.tier=""`:                             "c",
		"spec.tier in (gold, silver)":              "a b d",
		"spec.tier in(,silver)":                    "b c",
		"spec.tier notin (gold,silver)":            "c",
		"spec.home":                                "c d",
		"!spec.home":                               "a b",
		"! spec.home.port":                         "a b d",
		"spec.home!=x":                             "a b c d",
		"spec.home.port=10.0.0.0/26":               "c",
		`spec.home="in, out"`:                      "d",
		`spec.home in ("in, out", x)`:              "d",
		"spec.fast=true":                           "a",
		"spec.fast!=true":                          "b c d",
		"spec.crew=3.0":                            "a",
		"spec.crew>3":                              "b c",
		"spec.crew<3.6":                            "a c",
		"spec.crew > lots":                         "d",
		"spec.crew<zzz":                            "d",
		"spec.load>0.4,spec.load<2":                "a",
		"spec.load>1k":                             "c",
		"spec.load=0.5":                            "", // a string equals the same text only
		"spec.serial=9007199254740993":             "c",
		"spec.serial>9007199254740992":             "c",
		"spec.serial>9007199254740992.5":           "c",
		`spec.x\=y,spec['x=y']=z`:                  "a",
		"spec.decks":                               "a b",
		"spec.decks=x":                             "",
		"spec.decks!=x":                            "a b c d",
		"spec.decks[*].name=lower":                 "a",
		"spec.decks[*].name!=lower":                "b c d",
		"spec.decks[0].guns>3":                     "a",
		"spec.decks[7].guns":                       "",
		"!spec.decks[7].guns":                      "a b c d",
		"metadata.name in (a,c)":                   "a c",
		"metadata.namespace=other":                 "c",
		"!metadata.namespace":                      "d",
		"in in (in)":                               "",
		"spec.tier notin(gold),notin!=in":          "b c",
		`spec.decks[?(@.name=="upper")].guns=4`:    "a",
		`$.spec.tier=silver,$['spec'].crew=12`:     "b",
		`['spec'].tier=silver`:                     "b",
		`spec.decks[?(@.name=="a..b ,]")].guns!=4`: "a b c d",
		`metadata.labels.example\.com/team="the \"A\" team"`:            "a",
		`metadata.labels['example\.com/team'],metadata.labels["app"]=a`: "",
	} {
		result, err := r.Query(lister.Query{Where: where})
		if strings.Contains(where, `labels["app"]`) { // kubectl has single quotes only
			if !errors.Is(err, lister.ErrQuery) {
				t.Errorf("%s: error %v", where, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		if got := names(result.Items); got != want || result.Total != len(result.Items) {
			t.Errorf("%s selects %q (total %d), want %q", where, got, result.Total, want)
		}
		if n, err := r.Count(lister.Query{Where: where, Limit: 1, Offset: 1}); n != result.Total || err != nil {
			t.Errorf("%s: Count is %d, %v", where, n, err)
		}
	}
}

// Numbers are compared exactly, in each text of their values.
func TestQuery_Numbers(t *testing.T) {
	numbers := []any{
		parsed(t, "", "a", `{"f":0.12345678915,"tenth":0.1,"i":100000,"large":1e300,"s":"99999999999999999999","q":"99999999999999999999Ki","h":"12e5","z":"010"}`),
		parsed(t, "", "b", `{"f":0.2,"tenth":0.3,"i":3,"large":5e-324,"s":"88888888888888888888","q":"0.1234567891234m","h":"13e5","z":"-.5k"}`),
		parsed(t, "", "c", `{"f":0.12345678916,"i":-1,"s":"0.12345678915","q":"0.1234567891235m","h":"1300000","z":"9."}`),
	}
	for name, r := range map[string]*lister.Reader{
		"trees": lister.NewReader(newIndexer(t, numbers...), widgets), "packed": lister.NewReader(newPacked(t, numbers...), widgets),
	} {
		for where, want := range map[string]string{
			"f>0.1234567891":              "a b c",
			"f<0.1234567892":              "a c",
			"f>0.123456789155":            "b c",
			"f=1.2345678915e-1":           "a",
			"tenth=0.10":                  "a",
			"tenth=1e-1":                  "a",
			"tenth<0.3":                   "a",
			"i=1e5":                       "a",
			"i=+1E+05":                    "a",
			"i>1e3":                       "a",
			"i in (3e0,-10e-1)":           "b c",
			"i<1e400":                     "", // no number
			"i<1e-999999999":              "",
			"large>9e299":                 "a",
			"large=10e299":                "a",
			"large=1" + zeros(300):        "a",
			"large=1" + zeros(300) + ".0": "a",
			"large<1e-320":                "b",
			"s>90000000000000000000":      "a",
			"s>1e-1":                      "a b c",
			"q<0.12345678912345m":         "b",
			"q>99999999999999999999":      "a",
			"h=12e5":                      "a",
			"h=1200000":                   "", // a string equals the same text only
			"h>1e5":                       "c",
			"z=10":                        "",
			"z<-499":                      "b",
			"z>9.5":                       "a",
		} {
			result, err := r.Query(lister.Query{Where: where})
			if got := names(result.Items); err != nil || got != want {
				t.Errorf("%s: %s selects %q, %v; want %q", name, where, got, err, want)
			}
		}
		for by, want := range map[string]string{"f": "a c b", "s": "c b a", "q": "b c a", "h": "c a b", "z": "b c a"} {
			if result, err := r.Query(lister.Query{SortBy: by}); err != nil || strings.Join(inOrder(result.Items), " ") != want {
				t.Errorf("%s: by %s: %q, %v; want %q", name, by, inOrder(result.Items), err, want)
			}
		}
	}
}

func zeros(n int) string { return strings.Repeat("0", n) }

// A part of an object that does not fit a path has no result, and does not hide the others.
func TestQuery_ElementsOfOtherTypes(t *testing.T) {
	crew := []any{
		parsed(t, "", "a", `{"spec":{"ports":[{"name":"x","target":"http"},{"name":"web","target":8080},null,7,{"name":"none"},{"name":"two","target":[1,2]},{"name":"half","target":0.5}]}}`),
		parsed(t, "", "b", `{"spec":{"ports":[{"name":"web","target":8080.0,"on":true}]}}`),
		parsed(t, "", "c", `{"spec":{"ports":"none","rows":[[1,2],[],"x",[3]]}}`),
	}
	for name, r := range map[string]*lister.Reader{
		"trees": lister.NewReader(newIndexer(t, crew...), widgets), "packed": lister.NewReader(newPacked(t, crew...), widgets),
	} {
		for where, want := range map[string]string{
			`spec.ports[?(@.target==8080)].name=web`:  "a b",
			`!spec.ports[?(@.target==8080)]`:          "c",
			`spec.ports[?(@.target=="http")].name=x`:  "a",
			`spec.ports[?(@.target!=8080)].name=x`:    "", // a string is not comparable with a number
			`spec.ports[?(@.target!=8080)].name=half`: "a",
			`spec.ports[?(@.target>80)].name=web`:     "a b",
			`spec.ports[?(@.target>=8080)].name=web`:  "a b",
			`spec.ports[?(@.target<=0.5)].name=half`:  "a",
			`spec.ports[?(@.target<0.75)].name=half`:  "a",
			`spec.ports[?(0.75>@.target)].name=half`:  "a",
			`spec.ports[?(@.target[*]==1)]`:           "", // two values are not comparable
			`spec.ports[?(@.target[1]==2)].name=two`:  "a",
			`spec.ports[?(@.on==true)]`:               "b",
			`spec.ports[?(@.on!=false)]`:              "b",
			`spec.ports[?(@.on!=1)]`:                  "",
			`spec.ports[?(@.on>=false)]`:              "", // true and false have no order
			`spec.ports[?(@==7)]`:                     "a",
			`spec.ports[?(@.target)].name=none`:       "",
			`spec.ports[?(@.target==@.target)]`:       "a b",
			`spec.rows[*][0]>2`:                       "c",
			`spec.rows[*][-1]=2`:                      "c",
			`spec.rows[*].*=3`:                        "c",
			`spec.ports[0:9]`:                         "", // as for kubectl
		} {
			result, err := r.Query(lister.Query{Where: where})
			if got := names(result.Items); err != nil || got != want {
				t.Errorf("%s: %s selects %q, %v; want %q", name, where, got, err, want)
			}
		}
	}
}

// The results of a path are those of kubectl's JSONPath, if that has no error. No list is empty: after an empty one, kubectl reads no other.
func TestQuery_PathsAreThoseOfJSONPath(t *testing.T) {
	content := `{"a":{"b":[0,1,2,3,4],"c":{"d":"x","e":null}},"l":[{"n":1,"s":"b"},{"n":2,"s":"a","d":{"d":true}},{"s":"c"}],"t":true,"f":1.5,"x.y":"z","n":null}`
	object := parsed(t, "", "object", content)
	trees, fromPacked := lister.NewReader(newIndexer(t, object), widgets), lister.NewReader(newPacked(t, object), widgets)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	steps := []string{
		".a", ".b", ".c", ".d", ".e", ".l", ".l", ".n", ".s", ".t", ".*", "[*]", "[0]", "[-1]", "[1:3]", "[:2]", "[1:]", "[::2]", "[-3:-1]", "[7]", "[2:1]", "[]", "['a']", "['b','c']", "[0,1]", "[0,-1,7]",
		"['x\\.y']", `[?(@.n)]`, `[?(@.n==1)]`, `[?(@.n>=2)]`, `[?(@.n<2)]`, `[?(@.s=="a")]`, `[?(@.s!="a")]`, `[?(@.s>'a')]`, `[?(@.s<="b")]`, `[?(@.d.d==true)]`, `[?(@>2)]`, `[?(2>@)]`, `[?(@.n==@.n)]`,
	}
	compared := 0
	for range 500 {
		text := ""
		for range 1 + random.IntN(4) {
			text += steps[random.IntN(len(steps))]
		}
		theirs := jsonpath.New("path").AllowMissingKeys(true)
		if err := theirs.Parse("{" + text + "}"); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		results, err := theirs.FindResults(object.Object)
		if err != nil {
			continue
		}
		compared++
		wanted := []string{} // the scalars
		there := false
		for _, result := range slices.Concat(results...) {
			switch v := result.Interface().(type) {
			case nil:
			case map[string]any, []any:
				there = true
			case uint8: // of a wildcard in a string
			default:
				there = true
				wanted = append(wanted, fmt.Sprint(v))
			}
		}
		for _, r := range []*lister.Reader{trees, fromPacked} {
			if n, err := r.Count(lister.Query{Where: text}); err != nil || (n == 1) != there {
				t.Fatalf("seed %d: %s finds a value: %v, %v; want %v", seed, text, n == 1, err, there)
			}
			for _, scalar := range []string{"0", "1", "2", "3", "4", "x", "a", "b", "c", "true", "1.5", "z", "object"} {
				if n, err := r.Count(lister.Query{Where: text + "=" + scalar}); err != nil || (n == 1) != slices.Contains(wanted, scalar) {
					t.Fatalf("seed %d: %s finds %s: %v, %v; want %q", seed, text, scalar, n == 1, err, wanted)
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("seed %d: %d paths were compared", seed, compared)
	}
}

// The map of an object has no order, but its names have.
func TestQuery_SortByAWildcard(t *testing.T) {
	var objects []any
	for i := range 30 {
		objects = append(objects, parsed(t, "", fmt.Sprintf("o%02d", i), fmt.Sprintf(`{"spec":{"a":%d,"b":%d,"c":%d,"d":0}}`, i, -i, i%3)))
	}
	for _, c := range []cache.Indexer{newIndexer(t, objects...), newPacked(t, objects...)} {
		result, err := lister.NewReader(c, widgets).Query(lister.Query{SortBy: "spec.*"})
		if got := inOrder(result.Items); err != nil || !slices.IsSorted(got) {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// The first of several results may be one that has no order.
func TestQuery_SortByTheFirstNumberOrText(t *testing.T) {
	objects := []any{
		parsed(t, "", "a", `{"f":[null,{"x":1},[0],3,1]}`), parsed(t, "", "b", `{"f":[2,9]}`), parsed(t, "", "c", `{"f":[{},null]}`), parsed(t, "", "d", `{"f":["x",0]}`),
	}
	for _, c := range []cache.Indexer{newIndexer(t, objects...), newPacked(t, objects...)} {
		result, err := lister.NewReader(c, widgets).Query(lister.Query{SortBy: "f[*]"})
		if got := strings.Join(inOrder(result.Items), " "); err != nil || got != "b a d c" {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// names returns the names of objects, sorted.
func names(objects []*unstructured.Unstructured) string {
	return strings.Join(slices.Sorted(slices.Values(inOrder(objects))), " ")
}

func inOrder(objects []*unstructured.Unstructured) (names []string) {
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}

func TestQuery_SortsAndPages(t *testing.T) {
	t.Run("trees", func(t *testing.T) { testPages(t, ships(t)) })
	t.Run("packed", func(t *testing.T) { testPages(t, lister.NewReader(newPacked(t, crew(t)...), widgets)) })
}

func testPages(t *testing.T, r *lister.Reader) {
	t.Helper()
	for _, tc := range []struct {
		query lister.Query
		want  string
		total int
	}{
		{lister.Query{}, "d a b c", 4}, // by namespace and name
		{lister.Query{SortBy: "spec.crew"}, "a c b d", 4},
		{lister.Query{SortBy: "spec.crew", Descending: true}, "d b c a", 4},
		{lister.Query{SortBy: "spec.load"}, "a b c d", 4},
		{lister.Query{SortBy: "spec.tier"}, "c d a b", 4},
		{lister.Query{SortBy: "spec.tier", Descending: true}, "b d a c", 4},
		{lister.Query{SortBy: "spec.serial"}, "d c a b", 4},
		{lister.Query{SortBy: "spec.serial", Descending: true}, "c d a b", 4},
		{lister.Query{SortBy: "spec.home"}, "d a b c", 4},
		{lister.Query{SortBy: "spec.fast", Descending: true}, "a b d c", 4},
		{lister.Query{SortBy: "spec.crew", Limit: 2}, "a c", 4},
		{lister.Query{SortBy: "spec.crew", Offset: 1, Limit: 2}, "c b", 4},
		{lister.Query{SortBy: "spec.crew", Offset: 3, Limit: 2}, "d", 4},
		{lister.Query{SortBy: "spec.crew", Offset: 4}, "", 4},
		{lister.Query{SortBy: "spec.crew", Offset: math.MaxInt, Limit: math.MaxInt}, "", 4},
		{lister.Query{Namespace: "ns"}, "a b", 2},
		{lister.Query{Namespace: "ns", Where: "spec.crew>3"}, "b", 1},
		{lister.Query{Selector: labels.SelectorFromSet(labels.Set{"app": "a"})}, "a", 1},
		{lister.Query{Selector: labels.Nothing()}, "", 0},
	} {
		result, err := r.Query(tc.query)
		if got := strings.Join(inOrder(result.Items), " "); err != nil || got != tc.want || result.Total != tc.total {
			t.Errorf("%+v: %q of %d, %v; want %q of %d", tc.query, got, result.Total, err, tc.want, tc.total)
		}
	}
}

func TestQuery_InvalidQueries(t *testing.T) {
	r := ships(t)
	for _, tc := range []struct {
		query lister.Query
		want  string
	}{
		{lister.Query{Where: "spec.tier gold"}, `Where "spec.tier gold": position 11: want an operator or a comma`},
		{lister.Query{Where: "spec.tier=a=b"}, `position 12: want an operator or a comma; values with special characters need double quotes`},
		{lister.Query{Where: "=gold"}, "position 1: want the path of a field"},
		{lister.Query{Where: "spec.tier=gold,"}, "position 16: want the path of a field"},
		{lister.Query{Where: "!"}, "position 2: want the path of a field"},
		{lister.Query{Where: "!spec.tier=gold"}, "position 11: want an operator or a comma"},
		{lister.Query{Where: "spec.crew>"}, "position 11: want a value"},
		{lister.Query{Where: "spec.tier inner (gold)"}, "position 11: want an operator or a comma"},
		{lister.Query{Where: "spec.tier in gold"}, "position 14: want values in parentheses"},
		{lister.Query{Where: "spec.tier in (gold"}, "position 19: want a comma or a closing parenthesis"},
		{lister.Query{Where: `spec.tier in ("gold`}, "position 15: a string in double quotes is not valid"},
		{lister.Query{Where: `spec.tier="gold`}, "position 11: a string in double quotes is not valid"},
		{lister.Query{Where: "spec.decks[?(@.name"}, "is not a valid JSONPath: "},
		{lister.Query{Where: "spec.decks[0]]"}, "is not a valid JSONPath: "},
		{lister.Query{Where: "{.spec.tier}=gold"}, "position 1: a path has no braces"},
		{lister.Query{Where: "spec.tier}{.spec=gold"}, "position 10: a path has no braces"},
		{lister.Query{SortBy: "spec.tier,spec.crew"}, `SortBy "spec.tier,spec.crew": position 10: the path ends before this`},
		{lister.Query{SortBy: "spec.decks["}, "is not a valid JSONPath: "},
		{lister.Query{Where: "spec..name"}, "position 1: a path that searches all levels (..) is not supported"},
		{lister.Query{Where: "spec.decks[?(@..name==1)]"}, "position 1: a path that searches all levels (..)"},
		{lister.Query{SortBy: "."}, "want the path of a field"},
		{lister.Query{SortBy: "$"}, "a path has an empty name"},
		{lister.Query{SortBy: "$."}, "want the path of a field"},
		{lister.Query{Where: "spec['..x..x']"}, "position 1: a path that searches all levels (..)"},
		{lister.Query{Where: "spec.decks['..guns',0]"}, "a path that searches all levels (..)"},
		{lister.Query{Where: "spec.decks[?(@['..name']==1)]"}, "a path that searches all levels (..)"},
		{lister.Query{Where: "spec.decks[?(1==@['..name'])]"}, "a path that searches all levels (..)"},
		{lister.Query{Where: "metadata."}, "position 1: a path has an empty name"},
		{lister.Query{Where: "spec.tier=gold,metadata.=a"}, "position 16: a path has an empty name"},
		{lister.Query{Where: "spec['']"}, "a path has an empty name"},
		{lister.Query{Where: "$spec.tier=gold"}, "a path has an empty name"},
		{lister.Query{Where: "spec.$.tier=gold"}, "a path has an empty name"},
		{lister.Query{Where: "spec.decks[?(range)].guns=4"}, "range is not a part of a path"},
		{lister.Query{Where: "spec.decks[?(name=='upper')].guns=4"}, "name is not a part of a path"},
		{lister.Query{Where: "spec.decks[0]name=upper"}, "name is not a part of a path"},
		{lister.Query{Where: "spec.decks[0]5=5"}, "a constant outside of a comparison"},
		{lister.Query{Where: "spec.decks[?(@.guns=4)]"}, "a filter has no operator ="},
		{lister.Query{Where: "spec.decks[::0]"}, "the step of a slice must be positive"},
		{lister.Query{Where: "spec" + strings.Repeat("['a','a','a','a']", 5)}, "the unions of a path have more than 256 combinations"},
		{lister.Query{SortBy: "spec['a'" + strings.Repeat(",'a'", 256) + "]"}, "the unions of a path have more than 256 combinations"},
		{lister.Query{Where: "a" + strings.Repeat(".a", 2048)}, "position 1: a path has more than 4096 bytes"},
		{lister.Query{SortBy: "a" + strings.Repeat(".a", 2048)}, "a path has more than 4096 bytes"},
		{lister.Query{Offset: -1}, `Offset "-1": it must not be negative`},
		{lister.Query{Limit: -1}, `Limit "-1": it must not be negative`},
	} {
		result, err := r.Query(tc.query)
		var typed *lister.QueryError
		if !errors.As(err, &typed) || !errors.Is(err, lister.ErrQuery) || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "lister: widgets.example.com: ") {
			t.Errorf("%+v: error %v, want %q", tc.query, err, tc.want)
		}
		if result.Items != nil || result.Total != 0 {
			t.Errorf("%+v: the result is %+v", tc.query, result)
		}
	}
}

func TestQuery_AnObjectOfAnotherTypeIsAnError(t *testing.T) {
	r := lister.NewReader(newIndexer(t, newObject("ns", "a", nil), metadataOnly()), widgets)
	if result, err := r.Query(lister.Query{}); err == nil || !strings.Contains(err.Error(), "want *unstructured.Unstructured") || result.Items != nil {
		t.Errorf("Query returns %v, %v", result, err)
	}
	if _, err := lister.NewReader(nil, widgets).Query(lister.Query{}); err == nil || !strings.Contains(err.Error(), "the indexer is nil") {
		t.Errorf("without an indexer: %v", err)
	}
}

// Where has the syntax and the meaning of label selectors for each text that is a label selector.
func TestQuery_WhereIsLikeALabelSelector(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	tokens := []string{"a", "b", "c", "in", "notin", "=", "==", "!=", "!", "(", ")", ",", " ", "7", "12", "x", ">", "<", "\t"}
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	names, values := []string{"a", "b", "c", "in"}, []string{"", "x", "7", "12", "a", "in"}
	clauses := []func() string{
		func() string { return pick(names) + pick([]string{"=", " = ", "==", "!="}) + pick(values) },
		func() string { return pick([]string{"", "!", "! "}) + pick(names) },
		func() string {
			return pick(names) + " " + pick([]string{"in", "notin"}) + " (" + pick(values) + pick([]string{",", " , "}) + pick(values) + ")"
		},
		func() string { return pick(names) + pick([]string{">", " < "}) + pick([]string{"7", "9", "12"}) },
		func() string { return pick(tokens) + pick(tokens) + pick(tokens) + pick(tokens) },
	}
	valid := 0
	for range 20_000 {
		var parts []string
		for range 1 + random.IntN(3) {
			parts = append(parts, clauses[random.IntN(len(clauses))]())
		}
		where := strings.Join(parts, pick([]string{",", ", "}))
		selector, err := labels.Parse(where)
		if err != nil {
			continue
		}
		valid++
		fields, set := map[string]any{}, labels.Set{}
		for _, name := range names {
			if random.IntN(2) == 0 {
				value := pick(values)
				fields[name], set[name] = value, value
			}
		}
		object := &unstructured.Unstructured{Object: fields}
		object.SetName("object")
		n, err := lister.NewReader(newIndexer(t, object), widgets).Count(lister.Query{Where: where})
		if err != nil || (n == 1) != selector.Matches(set) {
			t.Fatalf("seed %d: %q on %v: %d, %v; labels: %v", seed, where, set, n, err, selector.Matches(set))
		}
	}
	if valid < 5000 {
		t.Errorf("seed %d: only %d selectors are valid", seed, valid)
	}
}

// The order of a query is total: each page is a part of the whole, and both directions agree.
func TestQuery_OrderIsTotal(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	fields := []string{
		`3`, `3.0`, `"3"`, `"3000m"`, `9007199254740993`, `9007199254740992.0`, `"9007199254740993"`, `"1Gi"`, `1e300`, `-0.5`, `"a"`, `"b"`, `"1e999999999"`,
		`"12e5"`, `"1E"`, `"1Ei"`, `""`, `true`, `false`, `null`, `[1]`, `{"a":1}`, `"0.0000000001"`,
	}
	var objects []any
	for i := range 60 {
		objects = append(objects, parsed(t, "ns", fmt.Sprintf("o%02d", i), `{"f":`+fields[random.IntN(len(fields))]+`}`))
	}
	r := lister.NewReader(newIndexer(t, objects...), widgets)
	query := func(q lister.Query) []string {
		q.SortBy = "f"
		result, err := r.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		return inOrder(result.Items)
	}
	whole := query(lister.Query{})
	var pages []string
	for offset := 0; offset < len(objects); offset += 7 {
		pages = append(pages, query(lister.Query{Offset: offset, Limit: 7})...)
	}
	if diff := cmp.Diff(whole, pages); diff != "" {
		t.Errorf("seed %d: the pages differ (-whole +pages):\n%s", seed, diff)
	}
	of := func(name string) any {
		object, err := r.Get("ns/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return object.Object["f"]
	}
	place := func(v any) int {
		return slices.IndexFunc(whole, func(name string) bool { return cmp.Equal(of(name), v) })
	}
	for _, order := range [][]any{{-0.5, int64(3), int64(9007199254740993), 1e300, "", "12e5", "1e999999999", "a", "b", false, true, nil}, {"3000m", "1Gi", "1E", "1Ei", "a"}} {
		last := -1
		for _, v := range order {
			at := place(v)
			if at >= 0 && at < last {
				t.Errorf("seed %d: %v is at place %d of %q", seed, v, at, whole)
			}
			last = max(last, at)
		}
	}
}

func FuzzQuery(f *testing.F) {
	for _, where := range []string{`a.b=1,c in (x,"y z"),!d`, `a[?(@.b=="c")].d>3`, `a\.b!=`, `a[*].b notin (,)`, `a["b"]`, `a[0:-1:2]`, `a['b','c']<5`} {
		f.Add(where, "a.b")
	}
	r, fromPacked := ships(f), lister.NewReader(newPacked(f, crew(f)...), widgets)
	f.Fuzz(func(t *testing.T, where, sortBy string) {
		first, err := r.Query(lister.Query{Where: where, SortBy: sortBy})
		if err != nil {
			if !errors.Is(err, lister.ErrQuery) {
				t.Fatal(err)
			}
			return
		}
		second, err := r.Query(lister.Query{Where: where, SortBy: sortBy, Descending: true})
		if err != nil || first.Total != second.Total || names(first.Items) != names(second.Items) {
			t.Fatalf("%v, %v, then %v, %v", first.Total, inOrder(first.Items), inOrder(second.Items), err)
		}
		third, err := fromPacked.Query(lister.Query{Where: where, SortBy: sortBy})
		if err != nil || !slices.Equal(inOrder(first.Items), inOrder(third.Items)) {
			t.Fatalf("%v, of a packed cache %v, %v", inOrder(first.Items), inOrder(third.Items), err)
		}
	})
}
