// Package refusal makes the rejections that limiters and pools return. An
// immutable table holds the rejections, so that a refusal allocates nothing. The
// retry advice has jitter, so that callers refused together do not return together.
package refusal

import (
	"sync"
	"time"

	"github.com/spillway-go/spillway"
)

// steps are the values to which RetryAfter is rounded up. The advice is coarse; it
// only needs to grow with the backlog and to differ between callers.
var steps = [...]time.Duration{
	0, 50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond,
	300 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond, 800 * time.Millisecond,
	time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 4 * time.Second, 6 * time.Second,
	8 * time.Second, 12 * time.Second, 16 * time.Second, 24 * time.Second, 32 * time.Second, 45 * time.Second, 60 * time.Second,
}

// longest is the wait beyond which advice no longer grows. The last step is 1.25
// times longest, so that even the longest advice is spread.
const longest = 48 * time.Second

// Row holds the immutable rejections for one reason, one for each step of advice.
type Row [len(steps)]spillway.Rejection

// NewRow returns the rejections for reason. The cause is the name of a user's
// signal, the cause of a lease, or empty.
func NewRow(reason spillway.Reason, cause string) *Row {
	r := new(Row)
	for i, d := range steps {
		r[i] = spillway.Rejection{Reason: reason, Cause: cause, RetryAfter: d}
	}
	return r
}

// Reasons is the size of tables with one entry for each reason. There are fewer
// reasons today, so that reasons added later fit.
const Reasons = 16

// rows returns the rows that all limiters and pools share. The rows never change.
var rows = sync.OnceValue(func() (all [Reasons]*Row) {
	for i := range all {
		all[i] = NewRow(spillway.Reason(i), "")
	}
	return all
})

// Of returns the shared row of reason, or a new row for a reason outside the table.
func Of(reason spillway.Reason) *Row {
	if reason >= Reasons {
		return NewRow(reason, "")
	}
	return rows()[reason]
}

// Reason returns the reason of all rejections in the row.
func (r *Row) Reason() spillway.Reason { return r[0].Reason }

// Near returns the rejection with advice near wait: n spreads the advice evenly over
// 0.75 to 1.25 times wait, then the advice is rounded up to a step. Successive refusals
// pass different numbers. A wait of zero means no advice. Near allocates nothing.
func (r *Row) Near(wait time.Duration, n uint64) *spillway.Rejection {
	if wait <= 0 {
		return &r[0]
	}
	// splitmix64 spreads callers well enough.
	z := n * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	u := float64(int64((z^z>>31)>>11)) / (1 << 53) // a signed integer is converted in one step
	return &r[step(time.Duration(float64(min(wait, longest))*(0.75+u/2)))]
}

// Table returns shared rejections and numbers the refusals for the jitter.
type Table struct{ n uint64 }

// NewTable returns a table whose jitter depends on seed alone.
func NewTable(seed uint64) *Table { return &Table{seed} }

// For returns the shared rejection for reason with advice near wait. For allocates
// nothing. The caller must hold a lock, because For counts.
func (t *Table) For(reason spillway.Reason, wait time.Duration) *spillway.Rejection {
	return t.From(Of(reason), wait)
}

// From does the same as For with the rejections of r.
func (t *Table) From(r *Row, wait time.Duration) *spillway.Rejection {
	t.n++
	return r.Near(wait, t.n)
}

// Waited allocates a rejection for a caller that waited before the refusal.
func (t *Table) Waited(reason spillway.Reason, wait, waited time.Duration) *spillway.Rejection {
	r := *t.For(reason, wait)
	r.Waited = waited
	return &r
}

func step(d time.Duration) int {
	i := 0
	if middle := len(steps) / 2; d > steps[middle] {
		i = middle + 1
	}
	for i < len(steps)-1 && d > steps[i] {
		i++
	}
	return i
}
