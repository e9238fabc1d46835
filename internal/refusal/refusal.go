// Package refusal makes the rejections that limiters and pools hand out: an
// immutable table of them, so that refusing allocates nothing, and the advice
// when to come back, spread so that those refused together do not return
// together.
package refusal

import (
	"time"

	"github.com/spillway-go/spillway"
)

// steps are the values RetryAfter is rounded up to. Advice is coarse by nature;
// what matters is that it grows with the backlog and differs between callers.
var steps = [...]time.Duration{
	0, 50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond,
	300 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond, 800 * time.Millisecond,
	time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 4 * time.Second, 6 * time.Second,
	8 * time.Second, 12 * time.Second, 16 * time.Second, 24 * time.Second, 32 * time.Second, 45 * time.Second, 60 * time.Second,
}

// longest is the wait beyond which advice no longer grows: a quarter below the
// last step, so that even the longest advice is spread.
const longest = 48 * time.Second

// Table holds one immutable rejection for every reason and step.
type Table struct {
	rows [spillway.Closed + 1][len(steps)]spillway.Rejection
	rng  uint64
}

// NewTable returns a table whose jitter follows from seed alone.
func NewTable(seed uint64) *Table {
	t := &Table{rng: seed}
	for r := range t.rows {
		for i, d := range steps {
			t.rows[r][i] = spillway.Rejection{Reason: spillway.Reason(r), RetryAfter: d}
		}
	}
	return t
}

// For returns the shared rejection for reason with advice near wait: spread
// evenly over 0.75 to 1.25 times wait, then rounded up to a step. A wait of
// zero means no advice. It allocates nothing. The jitter has state: hold a lock.
func (t *Table) For(reason spillway.Reason, wait time.Duration) *spillway.Rejection {
	return &t.rows[reason][step(t.jitter(wait))]
}

// Waited returns a rejection of its own for a caller that waited first.
func (t *Table) Waited(reason spillway.Reason, wait, waited time.Duration) *spillway.Rejection {
	r := *t.For(reason, wait)
	r.Waited = waited
	return &r
}

func (t *Table) jitter(wait time.Duration) time.Duration {
	if wait <= 0 {
		return 0
	}
	// splitmix64: one addition and a hash, good enough to spread callers.
	t.rng += 0x9e3779b97f4a7c15
	z := t.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	u := float64((z^z>>31)>>11) / (1 << 53)
	wait = min(wait, longest)
	return time.Duration(float64(wait) * (0.75 + u/2))
}

func step(d time.Duration) int {
	for i, s := range steps {
		if d <= s {
			return i
		}
	}
	return len(steps) - 1
}
