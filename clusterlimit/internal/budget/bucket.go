package budget

import (
	"math"
	"time"
)

// Bucket is a leased rate: tokens come at the rate and are kept up to a burst. A new one is
// empty, and a change of the rate makes no token, so over any time replicas admit at most
// what the sum of their rates brings, and the bursts.
//
// More than a burst is saved for once somebody has asked for it, from what others leave, and
// for those that ask for more than a burst. Nothing is ever owed: a debt would end with
// the lease.
type Bucket struct {
	rate, burst, tokens float64 // rate in tokens a nanosecond
	saved               float64 // beyond the burst
	goal                float64 // of tokens and saved; zero: nothing is saved for
	at, until, forget   time.Duration
}

// BurstTime is how much of a rate may be saved up; at least one token can. SaveTime is how
// much at most, for one that asks for more.
const (
	BurstTime = 100 * time.Millisecond
	SaveTime  = time.Minute
)

// What was asked for is saved for until it is asked for again: after so many times the wait that
// was told, which whoever tells it may round up, and some more.
const (
	forgetWaits = 4
	forgetLeast = time.Second
)

// rounded is saved for beside, lest what was rounded be missing for ever.
const rounded = 1e-3

// Never is the wait for more than can be saved.
const Never time.Duration = -1

// Set changes the rate, in tokens a second, and when it ends.
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

// Take takes n tokens. If there are fewer, it says after what time there will be enough
// unless others take some; zero if that is not known, and Never.
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
		wait = time.Duration(min(math.Ceil(need/b.rate)+1, float64(time.Hour))) // one for what is rounded
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
