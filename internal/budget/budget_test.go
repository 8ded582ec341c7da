package budget

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// store is a cache.
type store struct{ objects, common int64 }

func (s *store) size() (objects, common int64) { return s.objects, s.common }

func refused(err error) *OverError {
	over, _ := errors.AsType[*OverError](err)
	return over
}

// list begins a list and sets its estimate. A list that does not fit is refused.
func list(t *testing.T, a *Account, name string, whole bool, estimate int64) (*Reservation, *OverError) {
	t.Helper()
	r, err := a.Begin(name, whole)
	if err == nil {
		if err = r.Resize(estimate); err != nil {
			r.Refuse(estimate)
		}
	}
	if err != nil && refused(err) == nil {
		t.Fatal(err)
	}
	return r, refused(err)
}

// What the objects of the cache have in common may shrink while a list waits, and grow again before there is room.
func TestBudget_AWaitingListNeedsLessIfThereIsMoreInCommon(t *testing.T) {
	b := New(200)
	var cached, others store
	a, other := b.Account(cached.size), b.Account(others.size)
	others.objects = 90
	other.Update()
	cached.common = 120
	if _, over := list(t, a, "b", false, 60); over == nil {
		t.Fatal("it fits")
	}
	cached.common = 0
	a.Update()
	w := a.Await(false, "b")
	cached.common = 100
	a.Update()
	if isOver(w) {
		t.Error("there is room beside the others")
	}
	others.objects = 20
	other.Update()
	if !isOver(w) { // 20 for the others, 120 in common, and 60
		t.Errorf("there is no room: %+v", b.Status())
	}
}

// Two lists of one account have a part in common, which counts once.
func TestBudget_AWaitingListNeedsLessBesideAnotherOne(t *testing.T) {
	for _, waits := range []bool{true, false} {
		b := New(100)
		cached, others := store{common: 5}, store{objects: 95}
		a, other := b.Account(cached.size), b.Account(others.size)
		a.Update()
		other.Update()
		if _, over := list(t, a, "first", false, 25); over == nil {
			t.Fatal("the first list fits")
		}
		if _, over := list(t, a, "second", false, 1); over == nil {
			t.Fatal("the second list fits")
		}
		cached.common = 0
		a.Update()
		first := a.Await(false, "first")
		var second *Wait
		if waits {
			second = a.Await(false, "second")
		}
		others.objects = 88
		other.Update()
		if waits && !isOver(second) { // 6 of 12
			t.Errorf("there is room for the second list: %+v", b.Status())
		}
		if _, over := list(t, a, "second", false, 1); over != nil {
			t.Errorf("the second list, which waits=%v: %v", waits, over)
		}
		if isOver(first) {
			t.Errorf("there is no room for the first list: %+v", b.Status())
		}
		others.objects = 69
		other.Update()
		if !isOver(first) { // 69 for the others, 1 for the second list, 5 in common, and 25
			t.Errorf("beside the second list, which waits=%v: %+v", waits, b.Status())
		}
	}
}

// Events may have filled its cache meanwhile, and more than the budget may be in use.
func TestBudget_AWaitingListThatNeedsNothingBegins(t *testing.T) {
	b := New(100)
	cached, others := store{objects: 20}, store{objects: 70}
	a, other := b.Account(cached.size), b.Account(others.size)
	a.Update()
	other.Update()
	if _, over := list(t, a, "", true, 50); over == nil {
		t.Fatal("it fits")
	}
	w := a.Await(true, "")
	cached.objects = 50
	a.Update()
	if !isOver(w) { // its objects replace as many
		t.Errorf("it waits: %+v", b.Status())
	}
}

// A list that replaces its cache and is not larger needs room only for what its objects have in common.
func TestBudget_AListNeedsRoomForWhatIsInCommon(t *testing.T) {
	b := New(120)
	cached := store{objects: 100}
	a := b.Account(cached.size)
	a.Update()
	r, err := a.Begin("", true)
	if err != nil || r.Resize(100) != nil {
		t.Fatalf("the same objects do not fit: %v", err)
	}
	cached.common = 50
	if err := r.Resize(100); refused(err) == nil {
		t.Errorf("the dictionary is free: %v", err)
	}
}

func isOver(w *Wait) bool {
	select {
	case <-w.Over():
		return true
	default:
		return false
	}
}

func check(t *testing.T, b *Budget, want status.Budget) {
	t.Helper()
	if got := b.Status(); got != want {
		t.Errorf("the budget is %+v, want %+v", got, want)
	}
}

// A list that has been let in, or whose wait has ended, does not make the changes of its cache concern the lists that wait.
func TestAccount_OnlyAListThatWaitsMayNeedLess(t *testing.T) {
	var s store
	a := New(100).Account(s.size)
	if _, over := list(t, a, "", true, 200); over == nil {
		t.Fatal("it fits")
	}
	waits := func(when string, want bool) {
		t.Helper()
		if got := a.waitsLocked(true); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	waits("it was refused", false)
	w := a.Await(true, "")
	waits("it waits", true)
	w.Leave()
	waits("its wait has ended", false)
}

func TestBudget_AListWaitsUntilThereIsRoom(t *testing.T) {
	b := New(100)
	var first, second store
	one, other := b.Account(first.size), b.Account(second.size)
	r, over := list(t, one, "", true, 60)
	if over != nil {
		t.Fatal(over)
	}
	check(t, b, status.Budget{Limit: 100, Lists: 60})
	first.objects = 55
	r.End(true)
	check(t, b, status.Budget{Limit: 100, Caches: 55})
	if _, over = list(t, other, "", true, 50); over == nil || *over != (OverError{Needs: 50, Used: 55, Limit: 100}) {
		t.Fatalf("refused with %+v", over)
	}
	if _, over = list(t, other, "", true, 1); over == nil { // what it needed before counts, without a request
		t.Error("a list that was refused has begun")
	}
	w := other.Await(true, "")
	if isOver(w) {
		t.Error("the wait is over")
	}
	check(t, b, status.Budget{Limit: 100, Caches: 55, Waiting: 1})
	first.objects = 51
	one.Update()
	if isOver(w) {
		t.Error("the wait is over before there is room")
	}
	first.objects = 50
	one.Update()
	if !isOver(w) {
		t.Error("the wait is not over")
	}
	w.Leave()
	check(t, b, status.Budget{Limit: 100, Caches: 50, Lists: 50})
	r, over = list(t, other, "", true, 20)
	if over != nil {
		t.Fatal(over)
	}
	check(t, b, status.Budget{Limit: 100, Caches: 50, Lists: 50}) // the first pages of a list may be small
	second.objects = 30
	r.End(true)
	check(t, b, status.Budget{Limit: 100, Caches: 80})
	one.Close()
	other.Close()
	check(t, b, status.Budget{Limit: 100})
}

func TestBudget_ARefusedListDoesNotBlockOthers(t *testing.T) {
	b := New(100)
	full := store{objects: 90}
	holder := b.Account(full.size)
	holder.Update()
	var waits []*Wait
	for _, needs := range []int64{80, 40, 30, 20} {
		a := b.Account((&store{}).size)
		if _, over := list(t, a, "", true, needs); over == nil {
			t.Fatalf("%d fit", needs)
		}
		waits = append(waits, a.Await(true, ""))
	}
	full.objects = 35 // room for 40 and 20, in this order
	holder.Update()
	if got := fmt.Sprint(isOver(waits[0]), isOver(waits[1]), isOver(waits[2]), isOver(waits[3])); got != "false true false true" {
		t.Errorf("the waits are over: %s", got)
	}
}

func TestBudget_ALaterRefusalIsLater(t *testing.T) {
	b := New(100)
	full := store{objects: 90}
	holder := b.Account(full.size)
	holder.Update()
	var accounts []*Account
	for range 2 {
		a := b.Account((&store{}).size)
		_, _ = list(t, a, "", true, 60)
		accounts = append(accounts, a)
	}
	accounts[0].Retry("") // it is refused again, and keeps its place
	if _, over := list(t, accounts[0], "", true, 70); over == nil {
		t.Fatal("it fits")
	}
	later, earlier := accounts[1].Await(true, ""), accounts[0].Await(true, "")
	full.objects = 30
	holder.Update()
	if !isOver(earlier) || isOver(later) {
		t.Errorf("the first one may begin: %v, the second one: %v", isOver(earlier), isOver(later))
	}
}

func TestBudget_AListThatReplacesTheCacheNeedsOnlyTheDifference(t *testing.T) {
	b := New(100)
	s := store{objects: 80, common: 5}
	a := b.Account(s.size)
	a.Update()
	r, over := list(t, a, "", true, 90)
	if over != nil {
		t.Fatal(over)
	}
	check(t, b, status.Budget{Limit: 100, Caches: 85, Lists: 10})
	if err := refused(r.Resize(96)); err == nil || *err != (OverError{Needs: 101, Used: 0, Limit: 100}) {
		t.Errorf("refused with %+v", err)
	}
	r.End(false)
	if _, over = list(t, a, "more", false, 16); over == nil || over.Used != 85 { // it adds to the cache
		t.Errorf("refused with %+v", over)
	}
	r, over = list(t, a, "less", false, 15)
	if over != nil {
		t.Fatal(over)
	}
	s.objects += 10
	r.Move(10)
	check(t, b, status.Budget{Limit: 100, Caches: 95, Lists: 5})
	s.objects += 10 // the estimate was too low
	r.Move(10)
	check(t, b, status.Budget{Limit: 100, Caches: 105})
	r.End(true)
	check(t, b, status.Budget{Limit: 100, Caches: 105})
}

func TestAccount_ClosedHasNothing(t *testing.T) {
	b := New(100)
	s := store{objects: 10}
	a := b.Account(s.size)
	a.Update()
	r, _ := list(t, a, "", true, 50)
	_, _ = list(t, a, "x", true, 500)
	w := a.Await(true, "x")
	a.Close()
	a.Close()
	if !isOver(w) {
		t.Error("a list waits")
	}
	w.Leave()
	a.Update()
	if err := r.Resize(20); err == nil || refused(err) != nil {
		t.Errorf("Resize: %v", err)
	}
	r.Refuse(20)
	r.Move(1)
	r.End(true)
	if _, err := a.Begin("", true); err == nil || refused(err) != nil {
		t.Errorf("Begin: %v", err)
	}
	check(t, b, status.Budget{Limit: 100})
}

func TestAccount_AnotherGenerationNeedsNothingYet(t *testing.T) {
	b := New(100)
	a := b.Account((&store{}).size)
	a.Begins(1)
	_, _ = list(t, a, "", true, 500)
	a.Begins(1)
	if w := a.Await(true, ""); isOver(w) {
		t.Error("the list may begin")
	}
	a.Begins(2)
	if w := a.Await(true, ""); !isOver(w) {
		t.Error("the list of another type waits")
	}
}

func TestBudget_ZeroIsNoLimit(t *testing.T) {
	for _, limit := range []int64{0, -1} {
		a := New(limit).Account(nil)
		a.Update()
		a.Begins(1)
		a.Retain(nil)
		a.Abandon()
		a.Retry("")
		r, err := a.Begin("", true)
		if err != nil || r.Resize(1<<60) != nil {
			t.Errorf("a limit of %d is a limit", limit)
		}
		r.Move(1)
		r.End(true)
		if w := a.Await(true, ""); !isOver(w) {
			t.Error("a list waits")
		} else {
			w.Leave()
		}
		a.Close()
		check(t, New(limit), status.Budget{})
	}
}

// user is one cache of the random test.
type user struct {
	*Account
	s     store
	lists map[string]*Reservation
	waits map[string]*Wait
}

// Whatever accounts do, the sums are those of their parts, and nothing is left at the end.
func TestBudget_Random(t *testing.T) {
	for seed := range uint64(500) {
		random(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func random(t *testing.T, r *rand.Rand) {
	t.Helper()
	b := New(1000)
	users := make([]*user, 1+r.IntN(5))
	begin := func(i int) {
		u := &user{lists: map[string]*Reservation{}, waits: map[string]*Wait{}}
		u.Account = b.Account(u.s.size)
		users[i] = u
	}
	for i := range users {
		begin(i)
	}
	for range 200 {
		i := r.IntN(len(users))
		u, name, whole := users[i], []string{"", "a", "b"}[r.IntN(3)], r.IntN(2) == 0
		switch r.IntN(10) {
		case 0, 1, 2:
			if u.lists[name] == nil {
				if l, err := u.Begin(name, whole); err == nil {
					u.lists[name] = l
				}
			}
		case 3, 4:
			if l, estimate := u.lists[name], r.Int64N(700); l != nil && l.Resize(estimate) != nil {
				l.Refuse(estimate)
				delete(u.lists, name)
			}
		case 5:
			u.lists[name].End(r.IntN(2) == 0)
			delete(u.lists, name)
		case 6:
			if w := u.waits[name]; w != nil {
				w.Leave()
				delete(u.waits, name)
			} else {
				u.waits[name] = u.Await(whole, name)
			}
		case 7:
			u.s.objects, u.s.common = r.Int64N(400), r.Int64N(50)
			u.Update()
		case 8:
			[]func(){func() { u.Retry(name) }, func() { u.Abandon(name) }, func() { u.Abandon() }, func() { u.Retain(map[string]bool{name: true}) }, func() { u.Begins(r.IntN(2)) }}[r.IntN(5)]()
		case 9:
			if r.IntN(4) == 0 {
				u.Close()
				begin(i)
			} else {
				u.lists[name].Move(r.Int64N(100))
			}
		}
		checkSums(t, b, users)
	}
	for _, u := range users {
		u.Close()
	}
	check(t, b, status.Budget{Limit: 1000})
}

func checkSums(t *testing.T, b *Budget, users []*user) {
	t.Helper()
	var used int64
	for _, u := range users {
		var whole, parts int64
		for l := range u.Account.lists {
			if l.whole {
				whole += l.held
			} else {
				parts += l.held
			}
			if l.ended || l.held < 0 {
				t.Errorf("a list has %d bytes, ended %v", l.held, l.ended)
			}
		}
		if whole != u.whole || parts != u.parts {
			t.Errorf("reservations %d and %d, want %d and %d", u.whole, u.parts, whole, parts)
		}
		promised := int64(0)
		for l := range u.Account.lists {
			promised = max(promised, l.common)
		}
		used += max(u.own, whole) + parts + max(u.common, promised)
	}
	if used != b.used {
		t.Errorf("%d bytes are used, want %d", b.used, used)
	}
	for _, w := range b.waiting {
		if needs := w.account.needsLocked(w.demand); b.used+needs <= b.limit {
			t.Errorf("a list that needs %d waits, and %d of %d are used", needs, b.used, b.limit)
		}
		if w.wait.ended && w.account.granted[w.name] != nil {
			t.Errorf("a list that may begin waits")
		}
	}
}

// Changes of a cache cost about the same, however many lists wait.
func TestBudget_ManyWait(t *testing.T) {
	const most = 3000
	changes := func(lists int) time.Duration {
		b := New(most)
		full := store{objects: most}
		holder := b.Account(full.size)
		holder.Update()
		for range lists {
			a := b.Account((&store{}).size)
			_, _ = list(t, a, "", true, most)
			a.Await(true, "")
		}
		fastest := time.Duration(math.MaxInt64) // the processors may be busy meanwhile
		for range 10 {
			begun := time.Now()
			for range 200 { // events of a cache that has too much, still
				full.objects--
				holder.Update()
				full.objects++
				holder.Update()
			}
			fastest = min(fastest, time.Since(begun))
		}
		return fastest
	}
	if one, many := changes(1), changes(most); many > 20*one {
		t.Errorf("changes take %v if %d lists wait, and %v if one waits", many, most, one)
	}
}
