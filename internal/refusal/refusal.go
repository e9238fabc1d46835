// Package refusal makes the rejections that limiters and pools hand out: an
// immutable table of them, so that refusing allocates nothing, and the advice
// when to come back, spread so that those refused together do not return
// together.
package refusal

import (
	"sync"
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

// Row holds the immutable rejections for one reason, a step of advice each.
type Row [len(steps)]spillway.Rejection

// NewRow returns the rejections for reason. A cause is the name of a user's
// signal.
func NewRow(reason spillway.Reason, cause string) *Row {
	r := new(Row)
	for i, d := range steps {
		r[i] = spillway.Rejection{Reason: reason, Cause: cause, RetryAfter: d}
	}
	return r
}

// Reasons is what tables with an entry for each reason have room for: more than
// there are, so that one that is added later is in them.
const Reasons = 16

// rows are shared by all, and never change.
var rows = sync.OnceValue(func() (all [Reasons]*Row) {
	for i := range all {
		all[i] = NewRow(spillway.Reason(i), "")
	}
	return all
})

// Of returns the shared row of reason, or for an unknown one a row of its own.
func Of(reason spillway.Reason) *Row {
	if reason >= Reasons {
		return NewRow(reason, "")
	}
	return rows()[reason]
}

// Reason is what the row was made for.
func (r *Row) Reason() spillway.Reason { return r[0].Reason }

// Near returns the rejection with advice near wait: spread by n evenly over 0.75
// to 1.25 times wait, then rounded up to a step. Callers refused one after the
// other pass different numbers. A wait of zero means no advice. It allocates
// nothing.
func (r *Row) Near(wait time.Duration, n uint64) *spillway.Rejection {
	if wait <= 0 {
		return &r[0]
	}
	// splitmix64: good enough to spread callers.
	z := n * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	u := float64((z^z>>31)>>11) / (1 << 53)
	return &r[step(time.Duration(float64(min(wait, longest))*(0.75+u/2)))]
}

// Table hands out the shared rejections, numbered by itself.
type Table struct{ n uint64 }

// NewTable returns a table whose jitter follows from seed alone.
func NewTable(seed uint64) *Table { return &Table{seed} }

// For returns the shared rejection for reason with advice near wait. It
// allocates nothing. It counts: hold a lock.
func (t *Table) For(reason spillway.Reason, wait time.Duration) *spillway.Rejection {
	return t.From(Of(reason), wait)
}

// From is For with a row of the caller's own.
func (t *Table) From(r *Row, wait time.Duration) *spillway.Rejection {
	t.n++
	return r.Near(wait, t.n)
}

// Waited returns a rejection of its own for a caller that waited first.
func (t *Table) Waited(reason spillway.Reason, wait, waited time.Duration) *spillway.Rejection {
	r := *t.For(reason, wait)
	r.Waited = waited
	return &r
}

func step(d time.Duration) int {
	for i, s := range steps {
		if d <= s {
			return i
		}
	}
	return len(steps) - 1
}
