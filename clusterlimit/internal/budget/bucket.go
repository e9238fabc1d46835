package budget

import (
	"math"
	"time"
)

// Bucket is a leased rate: tokens come at the rate and are kept up to a burst. A new one is
// empty, and a change of the rate makes no token, so over any time replicas admit at most
// what the sum of their rates brings, and the bursts.
type Bucket struct {
	rate, burst, tokens float64 // rate in tokens a nanosecond
	at, until           time.Duration
}

// BurstTime is how much of a rate may be saved up; at least one token can.
const BurstTime = 100 * time.Millisecond

// Set changes the rate, in tokens a second, and when it ends.
func (b *Bucket) Set(now time.Duration, rate int, until time.Duration) {
	b.fill(now)
	b.rate, b.until = float64(rate)/1e9, until
	b.burst = 0
	if rate > 0 {
		b.burst = max(b.rate*float64(BurstTime), 1)
	}
	b.tokens = min(b.tokens, b.burst)
}

func (b *Bucket) fill(now time.Duration) {
	if end := min(now, b.until); end > b.at {
		b.tokens = min(b.tokens+float64(end-b.at)*b.rate, b.burst)
	}
	b.at = max(b.at, now)
}

// Take takes n tokens. If there are fewer, it says after what time there will be enough;
// zero if that is not known. More than a burst at once is taken from a full bucket, and
// owed.
func (b *Bucket) Take(now time.Duration, n int) (ok bool, wait time.Duration) {
	if now >= b.until || b.burst == 0 {
		return false, 0
	}
	b.fill(now)
	need := min(float64(n), b.burst) - b.tokens
	if need > 0 {
		return false, time.Duration(min(math.Ceil(need/b.rate)+1, float64(time.Hour))) // one for what is rounded
	}
	b.tokens -= float64(n)
	return true, 0
}

// Until is when the rate ends.
func (b *Bucket) Until() time.Duration { return b.until }
