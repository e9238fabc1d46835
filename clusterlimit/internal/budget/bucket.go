package budget

import (
	"math"
	"time"
)

// Bucket is a leased rate: tokens arrive at the rate and accumulate up to a burst. A new Bucket is
// empty, and a change of the rate creates no token. So over any time replicas admit at most the sum
// of their rates, times the time, plus the bursts.
//
// After a request for more than a burst the bucket saves tokens beyond the burst, from tokens that
// other callers leave. Only requests for more than a burst get saved tokens. The bucket never goes
// into debt: a debt would end with the lease.
type Bucket struct {
	rate, burst, tokens float64 // rate in tokens a nanosecond
	saved               float64 // tokens saved beyond the burst
	goal                float64 // target for tokens plus saved; zero: no saving
	at, until, forget   time.Duration
}

// BurstTime is the time in which the rate fills a burst; a burst is at least one token. SaveTime is
// the time in which the rate fills the largest savings.
const (
	BurstTime = 100 * time.Millisecond
	SaveTime  = time.Minute
)

// A bucket forgets a goal that is not requested again within forgetWaits times the advised wait
// plus forgetLeast. Callers of the bucket may round the advised wait up.
const (
	forgetWaits = 4
	forgetLeast = time.Second
)

// rounded is added to a goal, so that rounding cannot keep the goal out of reach.
const rounded = 1e-3

// Never is the wait for more tokens than can be saved.
const Never time.Duration = -1

// Set changes the rate, in tokens a second, and the end of the rate.
func (b *Bucket) Set(now time.Duration, rate int, until time.Duration) {
	b.fill(now)
	b.rate, b.until = float64(rate)/1e9, until
	b.burst = 0
	if rate > 0 {
		b.burst = max(b.rate*float64(BurstTime), 1)
	}
	b.tokens = min(b.tokens, b.burst)
	b.saved = min(b.saved, max(b.rate*float64(SaveTime)-b.burst, 0))
}

func (b *Bucket) fill(now time.Duration) {
	if now >= b.forget {
		b.saved, b.goal = 0, 0
	}
	if end := min(now, b.until); end > b.at {
		b.tokens += float64(end-b.at) * b.rate
		if over := b.tokens - b.burst; over > 0 {
			b.tokens = b.burst
			b.saved = min(b.saved+over, max(b.goal-b.burst, b.saved))
		}
	}
	b.at = max(b.at, now)
}

// Take takes n tokens. If there are fewer, it returns the time until there are enough, unless other
// callers take some. The wait is zero if it is unknown, and Never if n tokens cannot be saved.
func (b *Bucket) Take(now time.Duration, n int) (ok bool, wait time.Duration) {
	if now >= b.until || b.burst == 0 {
		return false, 0
	}
	b.fill(now)
	want, large := float64(n), float64(n) > b.burst
	if large && want > b.rate*float64(SaveTime) {
		return false, Never
	}
	there := b.tokens
	if large {
		there += b.saved
	}
	if need := want - there; need > 0 {
		wait = time.Duration(min(math.Ceil(need/b.rate)+1, float64(time.Hour))) // one nanosecond for rounding
		if large {
			b.goal = max(b.goal, want+rounded)
			b.forget = max(b.forget, now+forgetWaits*wait+forgetLeast)
		}
		return false, wait
	}
	if large {
		saved := min(b.saved, want)
		b.saved -= saved
		want -= saved
	}
	b.tokens -= want
	return true, 0
}
