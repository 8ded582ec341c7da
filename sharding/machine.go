package sharding

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// instant is one reading of the two clocks of a process, as durations since the member joined. The monotonic
// clock may stop while the machine is suspended; the wall clock may be set.
type instant struct{ mono, wall time.Duration }

func (t instant) add(d time.Duration) instant { return instant{t.mono + d, t.wall + d} }

// reached reports whether one of the clocks has reached t. So a member's own term ends also while its
// machine is suspended, and a wall clock that is set back does not extend it.
func (t instant) reached(now instant) bool { return now.mono >= t.mono || now.wall >= t.wall }

// timing has the durations of a Config.
type timing struct{ lease, renew, retry, skew time.Duration }

// requestTimeout leaves time for a second request before a term ends.
func (t timing) requestTimeout() time.Duration { return t.renew / 2 }

// record is the part of a Lease that the protocol uses. Records are shared and read-only.
type record struct {
	name, version, uid string        // of the object
	identity           string        // the holder; empty: the member has left, and claims nothing
	instance           string        // a random name of the process that wrote it
	write              int64         // the number of the write in that process
	claims             Slots         // the slots on which the member may act, or on which it wants to act
	leaving            bool          // the member wants no slots
	seat               int           // the seat that the member has; noSeat if it knows none yet
	term               time.Duration // leaseDurationSeconds
}

// verb is the kind of a request.
type verb int

const (
	list    verb = iota + 1 // all Leases of the group, consistent: resourceVersion ""
	create                  // of the record
	update                  // of the record, if the stored version is that of the record
	release                 // update the Lease of another member, which is gone, to the record
	remove                  // of the record, if the stored version is that of the record
)

// writesOwn reports whether the requests write the Lease of the member.
func (v verb) writesOwn() bool { return v == create || v == update }

// String returns the verb of the API server.
func (v verb) String() string {
	switch v {
	case list:
		return "list"
	case create:
		return "create"
	case remove:
		return "delete"
	default:
		return "update"
	}
}

// request is a request that the machine wants to be sent.
type request struct {
	verb    verb
	record  record // not for list
	timeout time.Duration
}

// failure is what is known of a request without a successful response.
type failure int

const (
	unknown    failure = iota // it may have been executed, or may be executed later
	conflict                  // it was not executed: the object has another version, exists, or does not exist
	relabelled                // it was not executed, since the own Lease had lost the label of the group, which was put back
)

// grant says on which slots the member may act, and until when. It is immutable.
type grant struct {
	slots      Slots
	until      instant
	generation uint64 // increases when slots change
}

// owns reports whether the grant holds for slot. The caller reads the clocks after it has loaded the grant.
func (g *grant) owns(slot int, now instant) bool { return g.slots.Has(slot) && !g.until.reached(now) }

// peer is a Lease of another process, as last seen.
type peer struct {
	*record
	since   time.Duration // by the monotonic clock: when this version was first seen
	tried   time.Duration // when this member last asked the server to release or delete it; 0: never
	gone    bool          // it was not in the last list, and had not left
	expired bool
}

// counts reports whether the claims of the peer must be respected.
func (p *peer) counts() bool { return !p.expired && p.identity != "" }

// machine is the protocol of one member. It reads no clock and sends no request: the caller passes the time and the
// responses to its methods, and sends the request that next returns. So a simulation can run it. There is at most one
// request at a time. A machine is not safe for concurrent use.
//
// At no time may two members act on a slot. Three rules ensure that:
//
//  1. A member acts on a slot only after a list in which its own Lease claims the slot, and in which no
//     other Lease that has not expired claims it. For two members, one of the two lists is later, and shows both
//     claims, unless the other member has withdrawn its claim or has expired. This requires that no write of
//     the member that was sent earlier can still withdraw the claim: so the Lease must be that of its last write.
//  2. A member withdraws a claim only after it has stopped acting on the slot, and its followers have too.
//  3. A member stops acting at the end of its term, RenewDeadline after it sent its last successful write. A
//     Lease has expired for another member if a list that was sent LeaseDuration and ClockSkew after it first saw
//     the present version still shows that version. A write that is executed later has no effect for the
//     first member: its term has ended before, so that it needs another list. A member that has seen that a version has
//     expired may release it. Then it claims nothing for other members either, though they did not wait themselves.
//
// The assignment of slots to members only determines what a member claims. Members may see different groups.
type machine struct {
	timing
	name, identity, instance string
	random                   *rand.Rand

	grant    grant
	lost     [SlotCount]uint64 // by slot: the generation in which the member stopped acting on it
	settled  uint64            // the followers no longer act on what was lost up to this generation
	draining Slots             // the member no longer acts on these slots, but its followers may
	pending  Slots             // claimed, and not in the grant
	blocking Slots             // those of pending that another member claims

	peers       []*peer // by name, without the own Lease
	sparePeers  []*peer // for the next list
	predecessor *peer   // the Lease of the own name, if another process wrote it
	renewals    int     // of the predecessor's Lease
	joined      time.Duration
	members     []*peer // those of the last assignment, without this one
	spare       []*peer // for the next assignment
	seat        int
	yields      bool // its term, or that of its predecessor, has ended: another member may have got its seat
	want        Slots
	assigned    bool // the seats of the members are known

	inFlight     verb
	sent         instant // when the request in flight, or else the last one, was sent
	listDue      bool
	retryAt      time.Duration // no request before
	pollAt       time.Duration // the next list or renewal
	cleanAt      time.Duration // no request before that releases or deletes Leases of others
	cleaned      *peer         // what the last such request was for, and the version that it had; nil: a list has followed
	cleanedFrom  string
	conflicts    int    // since the last successful write
	differences  int    // the number of lists in a row in which the own Lease was not as the last write, which was executed
	relabelledAt int64  // acked when the label of the own Lease was last put back
	sure         bool   // the stored version of the own Lease is known
	stored       record // the own Lease as it was last seen; without a version: there is none
	written      record // the last write that was sent
	writtenAt    instant
	acked        int64 // the last write that is known to have been executed

	leaving, left bool
	alone         bool // the Lease is released, and there is no other one
	reason        Reason
	err           error // of the last request that failed, until one of its kind has succeeded
	failing       verb  // the kind of the request of err
	failingSince  time.Duration
	inUse         bool
}

func newMachine(now instant, t timing, name, identity, instance string, random *rand.Rand) *machine {
	return &machine{
		timing: t, name: name, identity: identity, instance: instance, random: random,
		grant: grant{generation: 1}, settled: 1, joined: now.mono, reason: ReasonJoining,
	}
}

// setGrant replaces the slots on which the member acts.
func (m *machine) setGrant(slots Slots) {
	if slots == m.grant.slots {
		return
	}
	m.grant.generation++
	lost := m.grant.slots.Minus(slots)
	for slot := range lost.All() {
		m.lost[slot] = m.grant.generation
	}
	m.draining = m.draining.Union(lost).Minus(slots)
	m.grant.slots = slots
}

// lostSince returns the slots on which the member has stopped acting since the grant of that generation.
func (m *machine) lostSince(generation uint64) (slots Slots) {
	for slot, lost := range m.lost {
		if lost > generation {
			slots.add(slot)
		}
	}
	return slots
}

// letGo says that the followers no longer act on slots that are not in the grant of this generation.
func (m *machine) letGo(generation uint64) {
	m.settled = max(m.settled, generation)
	for slot := range m.draining.All() {
		if m.lost[slot] <= m.settled {
			m.draining.remove(slot)
		}
	}
}

// leave lets all slots go, and ends when the Lease says so.
func (m *machine) leave() {
	m.leaving = true
	m.reason = ReasonLeaving
	m.setGrant(Slots{})
	m.want = Slots{}
	m.pending, m.blocking = Slots{}, Slots{}
}

// lose lets all slots go, against the will of the member. One that leaves has none any more, and keeps its reason.
func (m *machine) lose(reason Reason) {
	m.setGrant(Slots{})
	m.pending = m.want
	if !m.leaving {
		m.reason = reason
	}
}

// tick ends the term when its time has come.
func (m *machine) tick(now instant) {
	if (!m.grant.slots.Empty() || m.reason == ReasonNone) && m.grant.until.reached(now) {
		m.lose(ReasonNotRenewed)
		m.yields, m.listDue = true, true
	}
}

// next returns the request to send now. If there is none, it returns the time to wait if nothing else
// happens.
func (m *machine) next(now instant) (request, time.Duration) {
	m.tick(now)
	wait := m.untilTermEnds(now)
	if m.left || m.inFlight != 0 {
		return request{}, wait
	}
	if now.mono < m.retryAt {
		return request{}, min(wait, m.retryAt-now.mono)
	}
	r := request{timeout: m.requestTimeout()}
	switch garbage := m.garbage(now); {
	case !m.sure:
		r.verb = list
	case m.leaving && m.stored.version == "": // nothing to release: only followers may need time
		m.left = m.draining.Empty()
		return request{}, wait
	case m.alone: // no other member deletes the Lease
		r.verb, r.record = remove, m.stored
	case m.listDue: // also if writes take longer than RetryPeriod
		r.verb = list
	case m.writeDue(now):
		r.verb, r.record = m.nextWrite(), m.content()
		r.record.write++
		m.written, m.writtenAt = r.record, now
	case garbage != nil && garbage.identity != "": // first, so that each member sees that it claims nothing
		r.verb, r.record = release, *garbage.record
		r.record.identity, r.record.claims = "", Slots{}
		m.clean(now, garbage)
	case garbage != nil:
		r.verb, r.record = remove, *garbage.record
		m.clean(now, garbage)
	case now.mono >= m.pollAt:
		r.verb = list
	default:
		return request{}, min(wait, m.pollAt-now.mono)
	}
	m.inFlight, m.sent = r.verb, now
	return r, wait
}

// says reports whether two records of a Lease have the same contents, apart from the term.
func (r *record) says(other *record) bool {
	return r.identity == other.identity && r.instance == other.instance && r.write == other.write &&
		r.claims == other.claims && r.leaving == other.leaving && r.seat == other.seat
}

// slowDown delays the next request if the Leases in lists stay other than this member has written them: the own one, which another program may change
// or delete after each write, or one that the server keeps, for example because it has a finalizer. One difference is normal, and is
// corrected at once.
func (m *machine) slowDown(now instant, own *record) {
	switch {
	case m.acked == 0 || m.acked != m.written.write: // it is not known what the Lease should say
	case own != nil && own.says(&m.written):
		m.differences = 0
	default:
		if m.differences++; m.differences > 1 {
			m.retryAt = m.sent.mono + m.period()
		}
	}
	if p := m.cleaned; p != nil && !p.gone && p.version == m.cleanedFrom && slices.Contains(m.peers, p) {
		m.cleanAt = now.mono + m.retry
	}
	m.cleaned = nil
}

// untilTermEnds returns how long the member may still act, or an hour.
func (m *machine) untilTermEnds(now instant) time.Duration {
	if m.grant.slots.Empty() {
		return time.Hour
	}
	return max(0, min(m.grant.until.mono-now.mono, m.grant.until.wall-now.wall))
}

// content returns what the own Lease should say, with the number of the last write.
func (m *machine) content() record {
	r := record{
		name: m.name, version: m.stored.version, uid: m.stored.uid, identity: m.identity,
		instance: m.instance, write: m.written.write, claims: m.want.Union(m.draining), leaving: m.leaving, seat: m.seat, term: m.lease,
	}
	if m.leaving && r.claims.Empty() {
		r.identity = ""
	}
	return r
}

func (m *machine) nextWrite() verb {
	if m.stored.version == "" {
		return create
	}
	return update
}

// writeDue reports whether the own Lease must be renewed, or must say something else.
func (m *machine) writeDue(now instant) bool {
	if m.waitsForPredecessor() {
		return false
	}
	c := m.content()
	return m.acked != m.written.write || m.acked == 0 || now.mono-m.writtenAt.mono >= m.retry-m.retry/5 ||
		c.claims != m.stored.claims || c.leaving != m.stored.leaving || c.identity != m.stored.identity || c.seat != m.stored.seat
}

// succeeded records that the server has executed the last request, a write. version and uid are those of the Lease.
func (m *machine) succeeded(now instant, version, uid string) {
	m.tick(now)
	is := m.inFlight
	m.inFlight = 0
	m.listDue = true
	if is == remove || is == release {
		m.removed()
		return
	}
	m.conflicts = 0
	m.stored = m.written
	m.stored.version, m.stored.uid = version, uid
	m.confirm()
	if m.released() {
		m.left = len(m.peers) > 0 // otherwise a list shows whether a member has joined since the last one
	}
}

// released reports whether the stored Lease says that the member has left, and no write can change that later.
func (m *machine) released() bool {
	return m.leaving && m.acked == m.written.write && m.draining.Empty() && m.stored.version != "" && m.stored.identity == ""
}

// removed is called when a request to release or delete a Lease has a response.
func (m *machine) removed() {
	m.listDue = true
	m.left = m.left || m.alone
}

// confirm is called when the last write is known to have been executed.
func (m *machine) confirm() {
	if m.acked != m.written.write {
		m.acked = m.written.write
		m.grant.until = m.writtenAt.add(m.renew)
	}
	if m.failing.writesOwn() {
		m.err = nil
	}
}

// failed records that the last request failed.
func (m *machine) failed(now instant, how failure, err error) {
	m.tick(now)
	is := m.inFlight
	m.inFlight = 0
	if is == create || is == update {
		m.sure = false
	}
	m.listDue = false // renew first
	switch {
	case is == remove || is == release:
		m.removed()
	case is == list && m.released(): // it is not known whether there are other members
		m.left = true
	}
	switch {
	case how == relabelled && m.relabelledAt != m.acked: // at once, unless no write has succeeded since the last time
		m.conflicts, m.relabelledAt = 1, m.acked
	case how != unknown:
		m.conflicts++
	}
	if how == unknown || m.conflicts > 1 { // one conflict is normal after a lost response
		if m.err == nil {
			m.failingSince = now.mono
		}
		m.err, m.failing = err, is
		m.retryAt = m.sent.mono + m.period()
	}
}

// period returns the time between two renewals, up to a fifth less than RetryPeriod, and a quarter of that while
// the member waits for others to let slots go.
func (m *machine) period() time.Duration {
	d := m.retry
	if !m.blocking.Empty() {
		d /= 4
	}
	return d - time.Duration(m.random.Int64N(int64(d/5)+1))
}

// listed records the response to a list: the Leases of the group, in the order of their names. If it ends the grant, it does not
// begin another one, so that Reason says until the next response why.
func (m *machine) listed(now instant, records []*record) {
	generation := m.grant.generation
	m.tick(now)
	m.inFlight, m.listDue, m.sure = 0, false, true
	if !m.failing.writesOwn() {
		m.err = nil
	}
	own := m.merge(now, records)
	m.slowDown(now, own)
	if m.observeOwn(now, own); m.left || m.waitsForPredecessor() {
		m.pollAt = now.mono + m.period()
		return
	}
	if m.released() {
		m.alone = len(m.peers) == 0
		m.left = !m.alone
		return
	}
	m.assign()
	claimed := m.claimedByOthers()
	granted := m.grant.slots.Intersect(m.want)
	acknowledged := own != nil && own.instance == m.instance && own.write == m.written.write && !m.grant.until.reached(now)
	if acknowledged && m.grant.generation == generation {
		granted = granted.Union(m.want.Intersect(own.claims).Minus(claimed))
		if !m.leaving {
			m.reason = ReasonNone
		}
	}
	m.setGrant(granted)
	m.pending = m.want.Minus(granted)
	m.blocking = m.pending.Intersect(claimed)
	// The renewal after a slow response is not later than RetryPeriod after the last one was sent.
	m.pollAt = min(now.mono+m.period(), m.writtenAt.mono+m.retry)
}

// cutOff reports whether the member could not write its Lease for a term, or has never written it. A member that waits for its predecessor only lists.
func (m *machine) cutOff(now instant) bool {
	if m.waitsForPredecessor() {
		return now.mono >= m.pollAt+m.renew
	}
	return m.written.write > 0 && m.grant.until.reached(now)
}

// merge compares the list with what is known of the other Leases, and returns the own one. If the member was cut off, the times of the others
// begin again: it may be the API server that was down, and that no member could renew its Lease. Without that, the first one would
// take the slots of all others.
func (m *machine) merge(now instant, records []*record) (own *record) {
	if m.cutOff(now) {
		for _, p := range m.peers {
			if !p.expired {
				p.since = now.mono
			}
		}
	}
	merged, known := m.sparePeers[:0], m.peers
	for _, r := range records {
		for len(known) > 0 && known[0].name < r.name {
			merged = m.missing(now, merged, known[0])
			known = known[1:]
		}
		if r.name == m.name {
			own = r
			continue
		}
		var p *peer
		if len(known) > 0 && known[0].name == r.name {
			p, known = known[0], known[1:]
		} else {
			p = &peer{}
		}
		m.observe(now, p, r)
		merged = append(merged, p)
	}
	for _, p := range known {
		merged = m.missing(now, merged, p)
	}
	m.peers, m.sparePeers = merged, m.peers
	return own
}

// observe updates what is known of a Lease after it was listed, and reports whether the Lease has changed. Its time begins
// when the response was processed. It ends by the time when the request was sent: what the server did later is
// not in the list.
func (m *machine) observe(now instant, p *peer, r *record) (changed bool) {
	if p.record != nil && !p.gone && p.version == r.version {
		p.expired = m.sent.mono-p.since >= max(m.lease, r.term)+m.skew
		return false
	}
	if p.record == nil || p.identity != r.identity || p.seat != r.seat {
		m.assigned = false
	}
	p.record, p.since, p.gone, p.expired = r, now.mono, false, false
	return true
}

// missing keeps a Lease that was deleted until it would have expired, since its member may not know that it was.
func (m *machine) missing(now instant, merged []*peer, p *peer) []*peer {
	switch {
	case p.expired || p.identity == "":
		return merged
	case !p.gone:
		p.gone, p.since = true, now.mono
	case m.sent.mono-p.since >= max(m.lease, p.term)+m.skew:
		return merged
	}
	return append(merged, p)
}

// observeOwn compares the own Lease with what this process has written.
func (m *machine) observeOwn(now instant, own *record) {
	switch waits := m.waitsForPredecessor(); {
	case own == nil && waits:
		if len(m.missing(now, nil, m.predecessor)) == 0 {
			m.predecessor = nil
		}
	case own == nil:
		if m.stored.version != "" { // deleted: others may have seen that
			m.lose(ReasonLeaseDeleted)
		}
		m.stored = record{}
	case own.instance == m.instance && !waits:
		released := own.identity == "" && !m.grant.slots.Empty()
		if own.write < m.acked || released || !m.grant.slots.Minus(own.claims).Empty() { // changed, or restored from a backup
			m.lose(ReasonLeaseChanged)
		}
		m.stored = *own
		if own.write == m.written.write {
			m.confirm()
		}
		m.tick(now)
	default:
		if m.acked > 0 { // another process has written it: after the end of the own term, or before a backup was made that was restored
			m.lose(ReasonLeaseChanged)
			m.blocking = Slots{}
			m.acked, m.predecessor, m.renewals = 0, nil, 0
		}
		m.takeOver(now, own)
	}
}

// takeOver waits until the Lease of another process with the same identity expires, as that of a process
// that was killed does. Until then the member writes nothing. If the other process runs, it goes on to renew the Lease, and the member ends. One
// that renewed it only in the first term may have been killed meanwhile.
func (m *machine) takeOver(now instant, own *record) {
	if m.predecessor == nil {
		m.predecessor = &peer{}
	}
	first := m.predecessor.record == nil
	renewed := m.observe(now, m.predecessor, own) && !first
	if renewed {
		m.renewals++
	}
	switch {
	case !m.predecessor.counts():
		m.stored, m.seat, m.yields = *own, own.seat, true
	case renewed && m.renewals > 1 && now.mono-m.joined >= m.lease+m.skew: // the last request of a killed process may be late, but not two
		m.left, m.inUse = true, true
		m.reason = ReasonIdentityInUse
	default:
		m.stored = record{} // the Lease is not that of the member
	}
}

// waitsForPredecessor reports whether the own name belongs to another process.
func (m *machine) waitsForPredecessor() bool { return m.predecessor != nil && m.predecessor.counts() }

// assign computes the seat of the member and the slots that it wants, if the group has changed.
func (m *machine) assign() {
	if m.leaving {
		return
	}
	members := m.spare[:0]
	same := m.assigned && !m.yields
	m.assigned = true
	for _, p := range m.peers {
		if !p.counts() || p.leaving {
			continue
		}
		same = same && len(members) < len(m.members) && m.members[len(members)] == p
		members = append(members, p)
	}
	same = same && len(members) == len(m.members)
	m.members, m.spare = members, m.members
	if same {
		return
	}
	if (m.yields || m.acked == 0) && slices.ContainsFunc(members, func(p *peer) bool { return p.seat == m.seat }) {
		m.seat = noSeat
	}
	m.yields = false
	before, _ := slices.BinarySearchFunc(members, m.name, func(p *peer, name string) int { return strings.Compare(p.name, name) })
	said := make([]int, 0, len(members)+1)
	for _, p := range members {
		said = append(said, p.seat)
	}
	seats := assignSeats(slices.Insert(said, before, m.seat))
	m.seat = seats[before]
	m.want = slotsOf(m.seat, slices.Delete(seats, before, before+1))
}

// claimedByOthers returns the slots that Leases of others claim that have not expired.
func (m *machine) claimedByOthers() (claimed Slots) {
	for _, p := range m.peers {
		if p.counts() {
			claimed = claimed.Union(p.claims)
		}
	}
	return claimed
}

// forget is the number of terms after which a Lease that was released is deleted. A member that comes back meanwhile uses it again.
const forget = 4

// garbage returns a Lease of a member that is gone: one that has expired, to release it, so that members who join do not wait until it has
// expired for them, or one to delete. If there are several, it is the one that was tried least recently. Only the first member of the group, by
// the names of Leases, releases and deletes Leases.
func (m *machine) garbage(now instant) (oldest *peer) {
	if m.leaving || m.waitsForPredecessor() || now.mono < m.cleanAt || len(m.members) > 0 && m.members[0].name < m.name {
		return nil
	}
	for _, p := range m.peers {
		if !p.gone && (p.expired && p.identity != "" || m.sent.mono-p.since >= forget*(max(m.lease, p.term)+m.skew)) &&
			(oldest == nil || p.tried < oldest.tried) {
			oldest = p
		}
	}
	return oldest
}

// clean records that a request to release or delete the Lease of p is sent.
func (m *machine) clean(now instant, p *peer) {
	p.tried, m.cleaned, m.cleanedFrom = now.mono, p, p.version
}

// compareNames orders records as the machine expects them.
func compareNames(a, b *record) int { return strings.Compare(a.name, b.name) }
