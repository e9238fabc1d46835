// Package patterns runs any operation under one of five concurrency patterns, so that
// they can be compared under the same work:
//
//   - naive: a goroutine per request, without a bound;
//   - workerpool: a fixed number of workers behind a bounded queue;
//   - optimized: the same, with answers that are cleared and reused;
//   - limiter: no goroutines of its own, only a bound on how many run at once;
//   - adaptive: the same, with a bound that is found out and asked in front of the
//     service, before a request is read: see Runner.Admission.
//
// All five are correct: the caller waits for its answer, a caller whose context
// ends is let go, and work that panics or calls runtime.Goexit costs no slot
// and ends its caller the same way.
package patterns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi/internal/gauge"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/objectpool"
)

// The patterns' names.
const (
	Naive      = "naive"
	WorkerPool = "workerpool"
	Optimized  = "optimized"
	Limiter    = "limiter"
	Adaptive   = "adaptive"
)

var names = []string{Naive, WorkerPool, Optimized, Limiter, Adaptive}

// Names lists the patterns, the unbounded one first.
func Names() []string { return slices.Clone(names) }

// ErrUnknown reports a pattern that does not exist.
var ErrUnknown = errors.New("unknown pattern")

// Config says where a pattern's bounds are. The naive pattern has none and ignores
// them; the adaptive one finds its own.
type Config struct {
	// Workers is how many operations run at one time; at least 1.
	Workers int

	// QueueSize is how many requests may wait for their turn; 0 means none.
	QueueSize int

	// QueueWait is how long a request that finds the queue full waits for room
	// before it is refused; 0 means that it is refused at once. The limiter
	// pattern has no such second queue and ignores it.
	QueueWait time.Duration

	// Mode says whether refusals are enforced. Only the limiter and the adaptive
	// pattern have a dry run.
	Mode limiter.Mode

	// SlowStart is how long the bound of the adaptive pattern grows from one to what
	// it would be at once, from the first request on; 0 means not at all. Other
	// patterns ignore it.
	SlowStart time.Duration

	// Signals press the bounds of the limiter and the adaptive pattern beside latency,
	// such as the wait for a connection of a database. They are of one Runner. Other
	// patterns ignore them.
	Signals []limiter.Signal

	// Logger is told of operations that panicked on a goroutine other than the caller's,
	// in at most one line a second. Nil means that nothing is logged.
	Logger *slog.Logger
}

func (c Config) check(name string) error {
	switch {
	case c.Workers < 1:
		return fmt.Errorf("workers is %d: want at least 1", c.Workers)
	case c.QueueSize < 0:
		return fmt.Errorf("queue-size is %d: it cannot be negative (0 means that nothing waits)", c.QueueSize)
	case c.QueueWait < 0:
		return fmt.Errorf("queue-wait is %v: it cannot be negative (0 refuses at once)", c.QueueWait)
	case c.SlowStart < 0:
		return fmt.Errorf("slow-start is %v: it cannot be negative (0 means none)", c.SlowStart)
	case c.Mode != limiter.Enforce && name != Limiter && name != Adaptive:
		return fmt.Errorf("mode is %v, and pattern %s has no limiter: take %s or %s", c.Mode, name, Adaptive, Limiter)
	}
	return nil
}

// Runner runs operations under one pattern: see Run. It is safe for concurrent use.
type Runner struct {
	name    string
	exec    executor
	running gauge.Gauge
	reuses  bool
	pools   sync.Map // of answers, by the reflect.Type of their value; if the pattern reuses
}

// work makes an answer, whose type only Run knows. It may outlive the caller it was
// meant for.
type work func(context.Context) (any, error)

// executor decides when and on which goroutine work runs.
type executor interface {
	do(context.Context, work) (any, error)
	drain(context.Context) error
	stats(*Stats)
	collector() prometheus.Collector
}

// New returns the pattern of that name. The error matches ErrUnknown, or says
// which setting is wrong.
func New(name string, cfg Config) (*Runner, error) {
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, strings.Join(names, ", "))
	}
	if err := cfg.check(name); err != nil {
		return nil, err
	}
	r := &Runner{name: name, reuses: name == Optimized}
	var err error
	switch name {
	case Naive:
		r.exec = &naive{panics: newPanicLog(cfg.Logger)}
	case Limiter:
		r.exec, err = newLimited(cfg)
	case Adaptive:
		r.exec, err = newAdmitted(cfg)
	default:
		r.exec, err = newPooled(name, cfg)
	}
	return r, err
}

// Name returns the pattern's name.
func (r *Runner) Name() string { return r.name }

// Answer is what an operation made. It belongs to the caller until Release.
type Answer[T any] struct {
	Value T

	pool *objectpool.Pool[Answer[T]] // nil: not reused
}

// Release gives the answer back, cleared, if its pattern reuses it; otherwise it
// does nothing. Call it once, when the answer has been written: afterwards it may
// be another request's. An answer that is never released is collected as usual.
func (a *Answer[T]) Release() {
	if a.pool != nil {
		a.pool.Put(a)
	}
}

// clearer is an answer's value that can be reused.
type clearer interface{ Clear() }

// Run runs an operation under r's pattern: fill makes the answer, as one unit of
// work. Run returns when fill has, or when ctx has ended; under a pattern with
// goroutines of its own fill may then still be running. A fill that may write to its
// value after it has returned must not have a T with a method Clear: where *T has
// one, the optimized pattern reuses answers, those of each type apart (one that held
// a hundred patients is too big to be kept for one).
//
// Errors: those of fill, ctx.Err(), and a *spillway.Rejection when the pattern
// refuses.
func Run[T any](ctx context.Context, r *Runner, fill func(context.Context, *T) error) (*Answer[T], error) {
	made, err := r.exec.do(ctx, func(ctx context.Context) (any, error) {
		r.running.Enter()
		defer r.running.Leave()
		a := newAnswer[T](r)
		// An answer that failed goes straight back. One whose fill panicked does not:
		// something may still hold it. Nor does one whose caller has left: it would
		// have to be given back by its receiver.
		if err := fill(ctx, &a.Value); err != nil {
			a.Release()
			return nil, err
		}
		return a, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*Answer[T]), nil
}

func newAnswer[T any](r *Runner) *Answer[T] {
	if pool := answers[T](r); pool != nil {
		return pool.Get()
	}
	return new(Answer[T])
}

// answers returns the pool of answers of type T, made when first asked for; nil if
// they are not reused.
func answers[T any](r *Runner) *objectpool.Pool[Answer[T]] {
	if _, ok := any((*T)(nil)).(clearer); !ok || !r.reuses {
		return nil
	}
	kind := reflect.TypeFor[T]()
	known, ok := r.pools.Load(kind)
	if !ok {
		var pool *objectpool.Pool[Answer[T]]
		pool = objectpool.New(objectpool.Config[Answer[T]]{
			New:   func() *Answer[T] { return &Answer[T]{pool: pool} },
			Clear: func(a *Answer[T]) { any(&a.Value).(clearer).Clear() },
		})
		known, _ = r.pools.LoadOrStore(kind, pool)
	}
	return known.(*objectpool.Pool[Answer[T]])
}

// Drain refuses later requests and waits until those under way have ended. When
// ctx ends first, requests that did not start are dropped and the error is a
// *spillway.DrainError.
func (r *Runner) Drain(ctx context.Context) error { return r.exec.drain(ctx) }

// Limiter returns the limiter of the limiter and the adaptive pattern; nil for the
// others.
func (r *Runner) Limiter() *limiter.Limiter {
	if has, ok := r.exec.(interface{ limiter() *limiter.Limiter }); ok {
		return has.limiter()
	}
	return nil
}

// Admission returns the limiter that a request has to pass before it gets to Run, where
// the pattern decides there: the adaptive one's. Nil means that Run itself decides.
func (r *Runner) Admission() *limiter.Limiter {
	if r.name == Adaptive {
		return r.Limiter()
	}
	return nil
}

// Collector returns the pattern's Prometheus metrics; nil for naive, which
// decides nothing.
func (r *Runner) Collector() prometheus.Collector { return r.exec.collector() }

// Stats is a consistent picture of a pattern, the same for all of them. At any
// time Offered = Admitted + Rejected + Cancelled + Queued.
type Stats struct {
	Pattern   string            `json:"pattern"`
	Offered   uint64            `json:"offered"`   // requests
	Admitted  uint64            `json:"admitted"`  // started
	Completed uint64            `json:"completed"` // of the admitted, ended
	Rejected  uint64            `json:"rejected"`  // refused, or dropped by Drain
	Cancelled uint64            `json:"cancelled"` // their caller left before the start
	Reasons   map[string]uint64 `json:"reasons"`   // of the rejected
	InFlight  int               `json:"in_flight"`
	Queued    int               `json:"queued"`
	Peak      int               `json:"peak"` // most operations that ran at one time

	// ReuseRate is the true share of answers that were reused, 0 to 1; -1
	// when the pattern reuses none.
	ReuseRate float64 `json:"reuse_rate"`
	Responses uint64  `json:"responses"` // made or reused, when the pattern reuses
	Reused    uint64  `json:"reused"`

	QueueWait *histogram.Histogram `json:"queue_wait,omitempty"` // nanoseconds
	Service   *histogram.Histogram `json:"service,omitempty"`    // nanoseconds
}

// Stats returns the counts so far. It costs some microseconds.
func (r *Runner) Stats() Stats {
	s := Stats{Pattern: r.name, Peak: r.running.Peak(), Reasons: map[string]uint64{}, ReuseRate: -1}
	r.exec.stats(&s)
	if r.reuses {
		for _, pool := range r.pools.Range {
			of := pool.(interface{ Stats() objectpool.Stats }).Stats()
			s.Responses, s.Reused = s.Responses+of.Gets, s.Reused+of.Reused
		}
		s.ReuseRate = float64(s.Reused) / float64(max(s.Responses, 1))
	}
	return s
}
