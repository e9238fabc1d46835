package clusterlimit

import (
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// rate is the leased rate, which all calls of Allow share.
type rate struct {
	mu       sync.Mutex
	bucket   budget.Bucket
	shared   bool // the budget has a rate; otherwise all requests are admitted
	cause    *cause
	admitted uint64
	refused  uint64
	vain     uint64 // part of refused: no share would be enough

	asked uint64 // total demand when offered was last called, at since
	since time.Duration
}

// Allow admits n at once, or returns a *spillway.Rejection. The rejection has the reason Budget,
// the budget's name in its Cause, and the time until the share has room again. Allow neither waits
// nor sends anything, and allocates nothing. Without a rate in the budget Allow admits all.
// Admissions cannot be given back if the work is not done.
//
// If n is more than one and more than a tenth of a second's share, Allow refuses it at first. From
// then on the member saves admissions that other callers leave: ask again when the rejection says.
// If n is more than a minute's share, it is never admitted, and the Cause says so: ask for less.
func (m *Member) Allow(n int) error {
	if n <= 0 {
		return nil
	}
	now, r, count := m.now(), &m.rate, uint64(min(n, budget.Most)) // no counter overflows
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

// set changes the bound on admissions.
func (r *rate) set(now time.Duration, n int, until time.Duration, shared bool, c *cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bucket.Set(now, n, until)
	r.shared, r.cause = shared, c
}

// offered returns the demand that could be admitted: per second since the last call of offered, and
// in total.
func (r *rate) offered(now time.Duration) (perSecond int, all uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.admitted + r.refused - r.vain
	n, passed := asked-r.asked, now-r.since
	r.asked, r.since = asked, now
	return int(min(float64(n)/max(passed.Seconds(), .001), budget.Most)), asked
}

// advice lists the values to which RetryAfter is rounded up.
var advice = [...]time.Duration{
	0, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
	1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second, 30 * time.Second, time.Minute,
}

// cause is a reason for refusals, with its rejections.
type cause struct {
	name  string
	rows  [len(advice)]spillway.Rejection
	large spillway.Rejection // for more than can be saved
}

// causes has a cause for each standing.
type causes [budget.Left + 1]cause

func causesOf(name string) (all causes) {
	for standing, why := range map[budget.Standing]string{
		budget.Joining: ", none yet", budget.Held: "", budget.Kept: ", kept: the engine is away",
		budget.Over: ", over: the engine is away", budget.Left: ", given back",
	} {
		c := &all[standing]
		c.name = "lease of " + name + why
		c.large = spillway.Rejection{Reason: spillway.ReasonBudget, Cause: c.name + ", more at once than its share of a minute"}
		for i, d := range advice {
			c.rows[i] = spillway.Rejection{Reason: spillway.ReasonBudget, Cause: c.name, RetryAfter: d}
		}
	}
	return all
}

// near returns the rejection with advice near wait, for the n-th refusal. The advice is spread over
// half of wait, so that refused callers do not return together.
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
