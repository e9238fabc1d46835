// Package spillway holds the words that all packages of the module share:
// priorities, rejections and their reasons, and the error of a drain that ran
// out of time. It decides nothing; start with package limiter (may this work
// run now?) or workerpool (on which goroutine?).
package spillway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/carry"
)

// Priority orders work that competes for the same capacity. The zero value is
// Normal, so work that says nothing is neither favoured nor sacrificed.
type Priority int8

const (
	Low      Priority = iota - 1 // shed first: batch, prefetch, retries of others
	Normal                       // the zero value
	High                         // shed after Normal
	Critical                     // shed last
)

// String returns "low", "normal", "high" or "critical", and "priority(n)" for
// any other value.
func (p Priority) String() string {
	switch p {
	case Low:
		return "low"
	case Normal:
		return "normal"
	case High:
		return "high"
	case Critical:
		return "critical"
	}
	return fmt.Sprintf("priority(%d)", int8(p))
}

// ParsePriority returns the priority that String calls by that name: low, normal,
// high or critical, in upper or lower case. It takes no number: how many priorities
// there are may change.
func ParsePriority(text string) (Priority, error) {
	for p := Low; p <= Critical; p++ {
		if strings.EqualFold(text, p.String()) {
			return p, nil
		}
	}
	return Normal, fmt.Errorf("spillway: unknown priority %.20q: use low, normal, high or critical", text)
}

// MarshalText returns what String does, so that JSON and logs have the name, as a key of
// a map too.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is ParsePriority. An error leaves the priority as it was.
func (p *Priority) UnmarshalText(text []byte) error {
	parsed, err := ParsePriority(string(text))
	if err == nil {
		*p = parsed
	}
	return err
}

// WithPriority returns a context that carries p to every limiter and pool the
// work passes on its way. It allocates; middleware calls it once a request.
func WithPriority(ctx context.Context, p Priority) context.Context {
	w := carry.In(ctx)
	w.Priority = int8(p)
	return w
}

// PriorityFrom returns the priority that ctx carries, or Normal.
func PriorityFrom(ctx context.Context) Priority {
	if w := carry.From(ctx); w != nil {
		return Priority(w.Priority)
	}
	return Normal
}

// WithCost returns a context that says how many slots the work takes, to every limiter
// that it passes on its way. Below one means one; a limiter's own bounds apply. It
// allocates.
func WithCost(ctx context.Context, n int) context.Context {
	w := carry.In(ctx)
	w.Cost = int32(min(max(n, 1), math.MaxInt32))
	return w
}

// CostFrom returns the cost that ctx carries, or 0 if it says none.
func CostFrom(ctx context.Context) int {
	if w := carry.From(ctx); w != nil {
		return int(w.Cost)
	}
	return 0
}

// WithKind returns a context that says of which kind the work is, such as a route or the name
// of a query, to every limiter and pool that it passes on its way. Work is compared with
// work of its kind: with what takes about as long. There may be any number of names, of which
// a limiter tells the most frequent apart, about twenty; it shows them nowhere. An empty
// name says nothing. It allocates.
func WithKind(ctx context.Context, name string) context.Context {
	w := carry.In(ctx)
	w.Kind = name
	return w
}

// KindFrom returns the kind that ctx carries, or "" if it says none.
func KindFrom(ctx context.Context) string {
	if w := carry.From(ctx); w != nil {
		return w.Kind
	}
	return ""
}

// ErrRejected is matched by every *Rejection: errors.Is(err, ErrRejected) tells
// work that was refused from work that was tried and failed.
var ErrRejected = errors.New("spillway: rejected")

// Rejection reports work that was never started, why, and what the caller may
// do. A Rejection is immutable and may be shared by many callers at once; its
// durations are rounded to the steps of a table, so that refusing allocates
// nothing.
type Rejection struct {
	Reason     Reason
	Cause      string        // the name of the user's signal when Reason is Signal, or of the lease when it is Budget; else empty
	RetryAfter time.Duration // when capacity is expected; zero means no advice
	Waited     time.Duration // how long the caller waited before that
}

func (r *Rejection) Error() string {
	s := "spillway: rejected: " + r.Reason.String()
	if r.Cause != "" {
		s += " (" + r.Cause + ")"
	}
	if r.RetryAfter > 0 {
		s += ", retry after " + r.RetryAfter.String()
	}
	return s
}

// Is reports whether target is ErrRejected.
func (r *Rejection) Is(target error) bool { return target == ErrRejected }

// Reason says why work was refused. Reasons may be added: treat one that is not
// known as a lack of capacity.
type Reason uint8

// The reasons, in the order in which reports list them.
const (
	QueueFull        Reason = iota + 1 // as many wait as may wait
	WaitTooLong                        // waited, or would have to wait, longer than allowed
	DeadlineTooClose                   // the caller's deadline leaves no time for the work
	Preempted                          // a more important caller took the place in the queue
	Memory                             // the heap is too close to its limit
	Scheduler                          // runnable goroutines wait too long for a processor
	Signal                             // a user's signal; Rejection.Cause names it
	Quota                              // this caller's own share is used up
	Budget                             // this process's share of what replicas share is used up, or over; Rejection.Cause names it
	Draining                           // the intake is closed, what was accepted is being finished
	Closed                             // closed
)

var reasons = [...]string{
	QueueFull: "queue_full", WaitTooLong: "wait_too_long", DeadlineTooClose: "deadline_too_close",
	Preempted: "preempted", Memory: "memory", Scheduler: "scheduler", Signal: "signal",
	Quota: "quota", Budget: "budget", Draining: "draining", Closed: "closed",
}

// Reasons returns every reason, in order. Metrics use it to list them all.
func Reasons() []Reason {
	all := make([]Reason, 0, len(reasons)-1)
	for r := QueueFull; int(r) < len(reasons); r++ {
		all = append(all, r)
	}
	return all
}

// String returns the reason in snake case, as metrics label it.
func (r Reason) String() string {
	if r >= QueueFull && int(r) < len(reasons) {
		return reasons[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// MarshalText returns what String does, so that JSON and logs have the name, as a key of
// a map too.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes what MarshalText returns for a reason that exists. An error leaves
// the reason as it was.
func (r *Reason) UnmarshalText(text []byte) error {
	for i, name := range reasons {
		if name != "" && name == string(text) {
			*r = Reason(i)
			return nil
		}
	}
	return fmt.Errorf("spillway: unknown reason %.30q", text)
}

// DrainError reports a drain whose context ended before the work did.
type DrainError struct {
	Dropped int   // accepted or waiting, and never started
	Running int   // started, and still running when Drain returned
	Cause   error // the context's error
}

func (e *DrainError) Error() string {
	return fmt.Sprintf("spillway: drain ended early (%v): %d dropped, %d still running", e.Cause, e.Dropped, e.Running)
}

// Unwrap returns the context's error.
func (e *DrainError) Unwrap() error { return e.Cause }

// PanicError carries a panic out of a goroutine that no caller waits for, or whose
// owner asked for errors instead of panics.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // the stack of the goroutine that panicked, as debug.Stack prints it
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// Unwrap returns the panic's value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
