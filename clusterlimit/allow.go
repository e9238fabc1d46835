package clusterlimit

import (
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// rate is the leased rate, where admissions meet.
type rate struct {
	mu       sync.Mutex
	bucket   budget.Bucket
	shared   bool // there is a rate; otherwise all is admitted
	cause    *cause
	admitted uint64
	refused  uint64
	vain     uint64 // of the refused: no share would be enough

	asked uint64 // when demand was last looked at, and how much had been asked for
	since time.Duration
}

// Allow admits n at once, or returns a *spillway.Rejection: Budget, with the budget's name in
// the Cause, and when the share has room again. It neither waits nor sends anything, and
// allocates nothing. Without a rate in the budget it admits all. What was admitted and is
// then not done cannot be given back.
//
// More than a tenth of a second's share, and more than one, is refused at first, and saved
// for from then on, from what others leave: ask again when the rejection says. More
// than a minute's share is never admitted, and the Cause says so: ask for less at a time.
func (m *Member) Allow(n int) error {
	if n <= 0 {
		return nil
	}
	now, r, count := m.now(), &m.rate, uint64(min(n, budget.Most)) // no count goes round
	r.mu.Lock()
	ok, wait := !r.shared, time.Duration(0)
	if !ok {
		ok, wait = r.bucket.Take(now, n)
	}
	if ok {
		r.admitted += count
		r.mu.Unlock()
		return nil
	}
	r.refused += count
	rej := &r.cause.large
	if wait != budget.Never {
		rej = r.cause.near(wait, r.refused)
	} else {
		r.vain += count
	}
	r.mu.Unlock()
	return rej
}

// set changes what may be admitted.
func (r *rate) set(now time.Duration, n int, until time.Duration, shared bool, c *cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bucket.Set(now, n, until)
	r.shared, r.cause = shared, c
}

// offered is how much was asked for that could be admitted: in a second since it was last
// called, and in all.
func (r *rate) offered(now time.Duration) (perSecond int, all uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.admitted + r.refused - r.vain
	n, passed := asked-r.asked, now-r.since
	r.asked, r.since = asked, now
	return int(min(float64(n)/max(passed.Seconds(), .001), budget.Most)), asked
}

// advice are the values that RetryAfter is rounded up to.
var advice = [...]time.Duration{
	0, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
	1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second, 30 * time.Second, time.Minute,
}

// cause is why a member refuses: the rejections for it.
type cause struct {
	name  string
	rows  [len(advice)]spillway.Rejection
	large spillway.Rejection // of more than can be saved for
}

// causes are those of all standings.
type causes [budget.Left + 1]cause

func causesOf(name string) (all causes) {
	for standing, why := range map[budget.Standing]string{
		budget.Joining: ", none yet", budget.Held: "", budget.Kept: ", kept: the engine is away",
		budget.Over: ", over: the engine is away", budget.Left: ", given back",
	} {
		c := &all[standing]
		c.name = "lease of " + name + why
		c.large = spillway.Rejection{Reason: spillway.Budget, Cause: c.name + ", more at once than its share of a minute"}
		for i, d := range advice {
			c.rows[i] = spillway.Rejection{Reason: spillway.Budget, Cause: c.name, RetryAfter: d}
		}
	}
	return all
}

// near returns the rejection with advice near wait, for the n-th of many: they are spread
// over half of it, so that they do not come back together.
func (c *cause) near(wait time.Duration, n uint64) *spillway.Rejection {
	if wait <= 0 {
		return &c.rows[0]
	}
	wait += wait * time.Duration(n*7919%64) / 128
	for i := range advice {
		if advice[i] >= wait {
			return &c.rows[i]
		}
	}
	return &c.rows[len(advice)-1]
}
