package limiter

import (
	"context"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// SetMode changes the mode at once. Leaving Enforce admits everybody who waits.
// Work admitted while the mode was Off is not counted, and Drain does not wait
// for it.
func (l *Limiter) SetMode(m Mode) {
	l.mode.Store(uint32(min(m, Off)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant(l.now())
}

// Limit returns how much may run at once now. It takes no lock.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }

// Drain closes the intake, so that later arrivals are rejected as Draining, and
// waits until everybody who already waited has been served and all work has
// ended. When ctx ends first, those who still wait are rejected, and the error
// is a *spillway.DrainError; running work is left alone. It may be called again
// to wait on.
func (l *Limiter) Drain(ctx context.Context) error {
	l.mu.Lock()
	l.gate.CloseIntake(spillway.Draining)
	if l.gate.Idle() {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped := l.drop()
	l.grant(l.now()) // ends other drains that only waited for the queue
	counts := l.gate.Counts()
	running := int(counts.Admitted-counts.Completed) + l.gate.Queued() // who is still queued was granted just now
	if dropped == 0 && running == 0 {
		return nil
	}
	return &spillway.DrainError{Dropped: dropped, Running: running, Cause: ctx.Err()}
}

// Close refuses everybody who waits and every later arrival as Closed. It does
// not wait; work that runs goes on and may still end its permit. Closing again
// does nothing.
func (l *Limiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate.CloseIntake(spillway.Closed)
	l.drop()
	l.grant(l.now())
}

// Stats is a consistent picture of a limiter. At any time Offered = Admitted +
// Rejected + Cancelled + Queued; Admitted - Completed is how many pieces of work
// run, which InFlight counts in slots.
type Stats struct {
	Name  string
	Law   string // the law's name
	State string // what the law is doing, in words
	Mode  Mode

	Limit    int // slots
	InFlight int // slots in use
	Queued   int // callers waiting

	Offered, Admitted, Completed uint64
	Rejected                     uint64 // over all reasons
	RejectedBy                   map[spillway.Reason]uint64
	Cancelled                    uint64 // the caller's context ended before it was admitted
	WouldReject                  uint64 // admitted by a dry run that would have been refused

	QueueWait *histogram.Histogram // of admitted work, nanoseconds
	Service   *histogram.Histogram // of work ended by Done, from admission to the end, nanoseconds
}

// Stats returns the counts so far. The picture is a copy and costs some
// microseconds; call it at the pace of a metrics scrape, not per request.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.gate.Counts()
	s := Stats{
		Name: l.name, Law: l.gate.Law().Name(), State: l.gate.Law().State(), Mode: Mode(l.mode.Load()),
		Limit: l.gate.Law().Limit(), InFlight: l.gate.InFlight(), Queued: l.gate.Queued(),
		Offered: c.Offered, Admitted: c.Admitted, Completed: c.Completed,
		Rejected: c.Rejected(), RejectedBy: map[spillway.Reason]uint64{},
		Cancelled: c.Cancelled, WouldReject: c.WouldReject,
	}
	for _, r := range spillway.Reasons() {
		if n := c.RejectedBy[r]; n > 0 {
			s.RejectedBy[r] = n
		}
	}
	s.QueueWait, s.Service = l.gate.Histograms()
	return s
}
