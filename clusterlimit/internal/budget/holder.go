package budget

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Terms are what a replica joins with.
type Terms struct {
	ID, Name string
	Totals   Amounts       // to be set when it joins; zero: what the others say
	TTL      time.Duration // how long a lease is good after it was asked for
	Fade     time.Duration // how long a lease that is kept takes to become an equal share
	Keep     bool          // go on with it while the store cannot be reached
}

// Standing says on what ground a replica admits work.
type Standing uint8

const (
	Joining Standing = iota // it has had no lease yet
	Held                    // it has a lease
	Kept                    // its lease is over and the store is away: it goes on with what it had, less and less
	Over                    // its lease is over: it admits nothing
	Left                    // it has given its lease back
)

// String returns the name in lower case.
func (s Standing) String() string {
	if names := [...]string{"joining", "held", "kept", "over", "left"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("standing(%d)", uint8(s))
}

// Bound is what a replica may use, and until when unless it is told again.
type Bound struct {
	Amounts
	Until time.Duration
	Standing
}

// Holder is one replica's side. Times are its own clock's, which never goes back. One
// attempt is Begin, then Aim and Renew and the write, again after a conflict, then
// Confirm or Fail.
//
// Two rules keep the sum of what may be used below the total while nobody is away. What
// is given back is not used from Aim on, before the others can see it, and what is gained
// only from Confirm on. And a lease ends TTL after Renew by the holder's clock, while
// others wait a quarter longer, and from when they have seen the write, which is later:
// so it is over before they take it, as long as no clock runs faster than another by more
// than a quarter.
type Holder struct {
	terms    Terms
	has      Amounts // may be used while until has not passed
	totals   Amounts
	replicas int
	token    uint64
	epoch    uint64 // the latest that it wrote
	until    time.Duration
	standing Standing

	began  time.Duration // of this attempt
	sent   time.Duration
	missed time.Duration // when the latest one began, if it failed
	failed bool
	seen   map[string]beat
	draft  State
	wants  Amounts
	aim    Amounts
	next   State
}

// beat is a renewal of another replica, and when it was first seen.
type beat struct {
	of uint64
	at time.Duration
}

// NewHolder returns a holder without a lease.
func NewHolder(t Terms) *Holder { return &Holder{terms: t, seen: map[string]beat{}} }

// Begin begins an attempt.
func (h *Holder) Begin(now time.Duration) { h.began = now }

// Aim reads the state and returns what may be used from now on: of what it has at most
// what it will keep. It must be enforced before Renew is told what is in use.
func (h *Holder) Aim(now time.Duration, s State, wants Amounts) Amounts {
	s.Epoch = max(s.Epoch, h.epoch) // less if the store has lost the budget
	if h.token == 0 {
		s = s.Share(h.terms.Totals)
	}
	for kind, n := range h.totals {
		s.Totals[kind] = cmp.Or(s.Totals[kind], n)
	}
	h.draft, h.wants = h.expire(now, s), wants
	if s.Of(h.terms.ID).Token == 0 {
		h.has, h.until, h.failed = Amounts{}, now, false // the others have waited, and taken it
	}
	h.aim = h.draft.Renew(h.terms, wants, Amounts{}).Of(h.terms.ID).Has
	for kind := range h.has {
		h.has[kind] = min(h.has[kind], h.aim[kind])
	}
	return h.has
}

// expire takes out the leases that have not been renewed for too long. Once the store
// was away, the others may have had no chance, and are waited for anew.
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

// expiry is how long the others wait for a holder that does not renew.
func expiry(ttl int64) time.Duration { return time.Duration(ttl + ttl/marginPart) }

// marginPart is the part of a lease by which the others wait longer.
const marginPart = 4

// Renew returns the state to write. Of what is in use nothing is given back.
func (h *Holder) Renew(now time.Duration, inUse Amounts) State {
	h.sent, h.next = now, h.draft.Renew(h.terms, h.wants, inUse)
	return h.next
}

// Confirm says that the state was written.
func (h *Holder) Confirm() {
	mine := h.next.Of(h.terms.ID)
	h.has, h.token, h.epoch = h.aim, mine.Token, h.next.Epoch
	h.totals, h.replicas = h.next.Totals, len(h.next.Leases)
	h.until, h.standing, h.failed = h.sent+h.terms.TTL, Held, false
}

// Fail says that the store did not answer, or not in time. It may have been written all
// the same.
func (h *Holder) Fail() { h.missed, h.failed = h.began, true }

// Quit makes it use nothing from now on.
func (h *Holder) Quit() { h.has, h.standing = Amounts{}, Left }

// Leave returns the state to write after Quit. What is in use stays its own until the
// others find that it is not renewed.
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

// Bound is what may be used now. That the store is away is known from an attempt that
// began a TTL ago at most, and failed: a process that was paused knows nothing, and
// admits nothing before it has asked.
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

// kept is what is left of the lease so long after its end: those that have more than an
// equal share go down to it, and only then the others go up.
func (h *Holder) kept(since time.Duration) (left Amounts) {
	down := min(float64(since)/float64(h.terms.Fade), 1)
	up := min(max(float64(since-h.terms.Fade-h.terms.TTL)/float64(h.terms.Fade), 0), 1)
	for kind, has := range h.has {
		part := up
		share := h.totals[kind] / max(h.replicas, 1)
		if has > share {
			part, share = down, max(share, 1) // what has a lease never goes to nothing
		}
		left[kind] = has + int(math.Floor(part*float64(share-has)))
	}
	return left
}

// Token orders the leases of a budget: a later one has a higher number. Zero: none yet.
func (h *Holder) Token() uint64 { return h.token }

// Totals is what all share, and how many they are, as far as it is known.
func (h *Holder) Totals() (Amounts, int) { return h.totals, h.replicas }
