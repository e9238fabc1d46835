package budget

import (
	"cmp"
	"math"
	"time"
)

// Terms are the terms on which a replica joins.
type Terms struct {
	ID     string
	Totals Amounts       // to set on joining; zero: the totals of the others
	TTL    time.Duration // how long a lease lasts after its request was sent
	Fade   time.Duration // how long a kept lease takes to become an equal share
	Keep   bool          // continue with the lease while the store cannot be reached
}

// Standing is the ground on which a replica admits work.
type Standing uint8

const (
	Joining Standing = iota // no lease yet
	Held                    // the replica has a lease
	Kept                    // the lease is over and the store is away: the replica continues with the lease, faded
	Over                    // the lease is over: the replica admits nothing
	Left                    // the replica has given its lease back
)

// String returns the name in lower case.
func (s Standing) String() string {
	return [...]string{"joining", "held", "kept", "over", "left"}[s]
}

// Bound is the amounts that a replica may use, and their end unless a new Bound replaces it.
type Bound struct {
	Amounts
	Until time.Duration
	Standing
}

// Holder is one replica's side. Times are readings of the replica's clock, which never goes back.
// One attempt consists of Begin, then Aim, Renew and the write, again after a conflict, then
// Confirm or Fail.
//
// Two rules keep the sum of usable amounts within the total while no replica is cut off. First, the
// holder stops using a returned amount at Aim, before other replicas can see it, and starts using a
// gain at Confirm. Second, a lease ends TTL after Renew by the holder's clock. Other replicas wait
// a quarter longer, starting when they see the write, which is later. So the lease is over before
// they take it, as long as no clock runs more than a quarter faster than another.
type Holder struct {
	terms    Terms
	has      Amounts // usable before until
	totals   Amounts // of the whole budget
	replicas int     // in the whole budget
	group    Group   // as last known
	order    Order   // of the latest visit that was written; zero once it is carried out
	token    uint64
	epoch    uint64 // the latest epoch that the holder wrote
	until    time.Duration
	standing Standing

	began  time.Duration // start of the current attempt
	sent   time.Duration
	missed time.Duration // start of the latest attempt, if it failed
	failed bool
	seen   map[string]beat
	visit  Order
	draft  State
	wants  Amounts
	aim    Amounts
	next   State

	written State // at the latest Confirm
}

// beat is a renewal of another replica, and the time at which the holder first saw it.
type beat struct {
	of uint64
	at time.Duration
}

// NewHolder returns a holder without a lease.
func NewHolder(t Terms) *Holder { return &Holder{terms: t, seen: map[string]beat{}} }

// Begin starts an attempt.
func (h *Holder) Begin(now time.Duration) { h.began = now }

// Aim reads the state and returns the amounts usable from now on: the part of the lease that the
// replica will keep. The caller must enforce them before it passes the amounts in use to Renew.
func (h *Holder) Aim(now time.Duration, s State, wants Amounts) Amounts {
	s.Epoch = max(s.Epoch, h.epoch)    // s.Epoch is smaller if the store has lost the budget
	if h.group.Seq > 0 && s.Seq == 0 { // a new group, or the store has lost it
		s.Totals, s.Group = Amounts{}, h.group
	}
	if s.Seq == 0 {
		if h.token == 0 {
			s = s.Share(h.terms.Totals)
		}
		for kind, n := range h.totals {
			s.Totals[kind] = cmp.Or(s.Totals[kind], n)
		}
	}
	s = h.order.apply(s)
	h.draft, h.wants = h.expire(now, s), wants
	if s.Of(h.terms.ID).Token == 0 {
		h.has, h.until, h.failed = Amounts{}, now, false // the others have waited, and taken the lease
	}
	h.aim = h.draft.Renew(h.terms, wants, Amounts{}).Of(h.terms.ID).Has
	for kind := range h.has {
		h.has[kind] = min(h.has[kind], h.aim[kind])
	}
	return h.has
}

// Expire returns the state without the leases that have not been renewed for too long, as this holder
// has seen them. It is for a group whose members are all gone.
func (h *Holder) Expire(now time.Duration, s State) State { return h.expire(now, s) }

// expire removes the leases that have not been renewed for too long. After a failed attempt the
// wait starts anew for all leases: the other replicas may have been unable to renew.
func (h *Holder) expire(now time.Duration, s State) State {
	old := h.seen
	h.seen = make(map[string]beat, len(s.Leases))
	for _, l := range s.Leases {
		b, known := old[l.ID]
		if !known || b.of != l.Beat || h.failed {
			b = beat{l.Beat, now}
		}
		h.seen[l.ID] = b
		if l.ID != h.terms.ID && now-b.at >= expiry(l.TTL) {
			s = s.Expire(l.ID, l.Beat)
		}
	}
	return s
}

// expiry is how long other replicas wait for a holder that does not renew.
func expiry(ttl int64) time.Duration { return time.Duration(ttl + ttl/marginPart) }

// marginPart is the divisor of a lease that gives the extra wait of other replicas.
const marginPart = 4

// Renew returns the state to write. It gives back no amount that is in use.
func (h *Holder) Renew(now time.Duration, inUse Amounts) State {
	h.sent, h.next = now, h.draft.Renew(h.terms, h.wants, inUse)
	return h.next
}

// Confirm records that the state was written.
func (h *Holder) Confirm() {
	mine := h.next.Of(h.terms.ID)
	h.has, h.token, h.epoch = h.aim, mine.Token, h.next.Epoch
	h.written, h.order = h.next, Order{}
	h.totals, h.replicas, h.group = h.next.Totals, len(h.next.Leases), h.next.Group
	if h.group.Seq > 0 {
		h.totals, h.replicas = h.group.Whole, max(h.group.Members, h.replicas)
	}
	h.until, h.standing, h.failed = h.sent+h.terms.TTL, Held, false
}

// Enter makes the holder a member of a group of the root: attempts are on the group's state from now
// on, which is the zero State if the group is new.
func (h *Holder) Enter(root State) {
	h.group = Group{Seq: 1, Whole: root.Totals, Members: root.Members}
}

// Visit returns the root to write for a visit on behalf of the group id, after Confirm, and the groups
// that seem to be without members.
func (h *Holder) Visit(root State, id string) (next State, missing []string) {
	next, h.visit, missing = root.Visit(id, h.terms.TTL, h.written)
	return next, missing
}

// Visited records that the root was written, and reports whether the group should be renewed at once.
func (h *Holder) Visited() (urgent bool) {
	h.order = h.visit
	return h.order.Urgent(h.written)
}

// DueVisit reports whether a visit is due after Confirm.
func (h *Holder) DueVisit() bool { return h.written.DueVisit() }

// Every is the time between two renewals: a budget with many replicas is renewed half as often.
func (h *Holder) Every() time.Duration {
	return h.terms.TTL / time.Duration(Renewals(h.replicas))
}

// Fail records that the store did not answer, or not in time. The state may have been written all
// the same.
func (h *Holder) Fail() { h.missed, h.failed = h.began, true }

// Quit makes the holder use nothing from now on.
func (h *Holder) Quit() { h.has, h.standing = Amounts{}, Left }

// Leave returns the state to write after Quit. Amounts in use stay in the lease until the other
// replicas find that it is not renewed.
func (h *Holder) Leave(s State, inUse Amounts) State {
	mine := s.Of(h.terms.ID)
	if inUse == (Amounts{}) || mine.Token == 0 {
		return s.Leave(h.terms.ID)
	}
	s = s.next()
	i, _ := s.find(h.terms.ID)
	s.Leases[i].Beat = s.Epoch
	for kind, n := range inUse {
		s.Leases[i].Has[kind] = min(mine.Has[kind], max(n, 0))
	}
	return s
}

// Bound returns the amounts usable now. The store counts as away only if an attempt failed that
// began at most a TTL ago: a process that was paused has no such attempt. It admits nothing before
// it has asked the store.
func (h *Holder) Bound(now time.Duration) Bound {
	b := Bound{h.has, h.until, h.standing}
	if h.standing != Held {
		return b
	}
	away := h.terms.Keep && h.failed && now < h.missed+h.terms.TTL
	if away {
		b.Until = max(h.until, h.missed+h.terms.TTL)
	}
	switch {
	case now < h.until:
	case away:
		b.Standing, b.Amounts = Kept, h.kept(now-h.until)
	default:
		b.Standing, b.Amounts = Over, Amounts{}
	}
	return b
}

// kept returns the remaining lease at the given time after its end. Amounts above an equal share
// shrink to it first. Only then do smaller amounts grow to it.
func (h *Holder) kept(since time.Duration) (left Amounts) {
	down := min(float64(since)/float64(h.terms.Fade), 1)
	grown := min(max(float64(since-h.terms.Fade-h.terms.TTL)/float64(h.terms.Fade), 0), 1)
	for kind, has := range h.has {
		part := grown
		share := h.totals[kind] / max(h.replicas, 1)
		if has > share {
			part, share = down, max(share, 1) // a lease never shrinks to zero
		}
		left[kind] = has + int(math.Floor(part*float64(share-has)))
	}
	return left
}

// Token is that of the lease: the next lease of the same replica has a higher token. Zero: no lease yet.
func (h *Holder) Token() uint64 { return h.token }

// Totals returns the budget's totals and the number of replicas, as last known.
func (h *Holder) Totals() (Amounts, int) { return h.totals, h.replicas }
