// Package patterns answers lookups under four concurrency patterns, so that they
// can be compared over the same store:
//
//   - naive: a goroutine per request, without a bound;
//   - workerpool: a fixed number of workers behind a bounded queue;
//   - optimized: the same, with responses that are cleared and reused;
//   - limiter: no goroutines of its own, only a bound on how many run at once.
//
// All four are correct: the caller waits for its answer, a caller whose context
// ends is let go, and a lookup that panics or calls runtime.Goexit costs no slot
// and ends its caller the same way.
package patterns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/internal/gauge"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/objectpool"
)

// The patterns' names.
const (
	Naive      = "naive"
	WorkerPool = "workerpool"
	Optimized  = "optimized"
	Limiter    = "limiter"
)

var names = []string{Naive, WorkerPool, Optimized, Limiter}

// Names lists the patterns, the unbounded one first.
func Names() []string { return slices.Clone(names) }

// ErrUnknown reports a pattern that does not exist.
var ErrUnknown = errors.New("unknown pattern")

// Config says what a pattern looks up and where its bounds are. The naive
// pattern has none and ignores them.
type Config struct {
	Store patientapi.Store

	// Clinicians finds clinicians. Nil means a directory over Store without a
	// cache.
	Clinicians *directory.Directory

	// Workers is how many lookups run at one time; at least 1.
	Workers int

	// QueueSize is how many requests may wait for their turn; 0 means none.
	QueueSize int

	// QueueWait is how long a request that finds the queue full waits for room
	// before it is refused; 0 means that it is refused at once. The limiter
	// pattern has no such second queue and ignores it.
	QueueWait time.Duration

	// Logger is told of lookups that panicked on a goroutine other than the caller's,
	// in at most one line a second. Nil means that nothing is logged.
	Logger *slog.Logger
}

func (c Config) check() error {
	switch {
	case c.Store == nil:
		return errors.New("patterns: no store")
	case c.Workers < 1:
		return fmt.Errorf("workers is %d: want at least 1", c.Workers)
	case c.QueueSize < 0:
		return fmt.Errorf("queue-size is %d: it cannot be negative (0 means that nobody waits)", c.QueueSize)
	case c.QueueWait < 0:
		return fmt.Errorf("queue-wait is %v: it cannot be negative (0 refuses at once)", c.QueueWait)
	}
	return nil
}

// Response is the answer to one request. It belongs to the caller until Release.
type Response struct {
	Patient patientapi.Patient // the answer of Lookup
	Batch   patientapi.Batch   // the answer of LookupBatch

	Clinicians patientapi.ClinicianAnswer // the answer of LookupClinicians

	pool *objectpool.Pool[Response]
}

// Release gives the response back, cleared, if its pattern reuses responses;
// otherwise it does nothing. Call it once, when the response has been written:
// afterwards it may be another patient's. A response that is never released is
// collected as usual.
func (r *Response) Release() {
	if r.pool != nil {
		r.pool.Put(r)
	}
}

func (r *Response) clear() {
	r.Patient.Clear()
	r.Batch.Clear()
	r.Clinicians = patientapi.ClinicianAnswer{}
}

// Runner answers lookups under one pattern. It is safe for concurrent use.
type Runner struct {
	name    string
	store   patientapi.Store
	people  *directory.Directory
	exec    executor
	running gauge.Gauge
	// Responses are reused apart: one that held a hundred patients is too big
	// to be kept for one.
	singles, batches *objectpool.Pool[Response]
}

// work makes a response. It may outlive the caller it was meant for.
type work func(context.Context) (*Response, error)

// executor decides when and on which goroutine work runs.
type executor interface {
	do(context.Context, work) (*Response, error)
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
	if err := cfg.check(); err != nil {
		return nil, err
	}
	r := &Runner{name: name, store: cfg.Store, people: cfg.Clinicians}
	var err error
	if r.people == nil {
		if r.people, err = directory.New(directory.Config{Store: cfg.Store}); err != nil {
			return nil, err
		}
	}
	switch name {
	case Naive:
		r.exec = &naive{panics: newPanicLog(cfg.Logger)}
	case Limiter:
		r.exec, err = newLimited(cfg)
	default:
		r.exec, err = newPooled(name, cfg)
	}
	if name == Optimized {
		r.singles, r.batches = newResponses(), newResponses()
	}
	return r, err
}

func newResponses() *objectpool.Pool[Response] {
	var pool *objectpool.Pool[Response]
	pool = objectpool.New(objectpool.Config[Response]{
		New:   func() *Response { return &Response{pool: pool} },
		Clear: (*Response).clear,
	})
	return pool
}

// Lookup returns the patient of that id. It waits until the lookup has ended, or
// ctx has. Errors: those of patientapi.Store, ctx.Err(), and a
// *spillway.Rejection when the pattern refuses. A malformed id costs no slot.
func (r *Runner) Lookup(ctx context.Context, id string) (*Response, error) {
	if _, err := patientapi.ParseID(id); err != nil {
		return nil, err
	}
	return r.exec.do(ctx, func(ctx context.Context) (*Response, error) {
		return r.fill(r.singles, func(resp *Response) error { return r.store.Patient(ctx, id, &resp.Patient) })
	})
}

// LookupBatch returns the patients of those ids, as one unit of work.
func (r *Runner) LookupBatch(ctx context.Context, ids []string) (*Response, error) {
	for _, id := range ids {
		if _, err := patientapi.ParseID(id); err != nil {
			return nil, err
		}
	}
	return r.exec.do(ctx, func(ctx context.Context) (*Response, error) {
		return r.fill(r.batches, func(resp *Response) error { return r.store.Patients(ctx, ids, &resp.Batch) })
	})
}

// LookupClinicians returns the clinicians whom q asks for, as one unit of work;
// without the cache, if there is one, only those of the database. Their answers
// are never reused: a source may be late.
func (r *Runner) LookupClinicians(ctx context.Context, q patientapi.ClinicianQuery, cache bool) (*Response, error) {
	find := r.people.Find
	if !cache {
		find = r.people.FindInStore
	}
	return r.exec.do(ctx, func(ctx context.Context) (*Response, error) {
		return r.fill(nil, func(resp *Response) (err error) {
			resp.Clinicians, err = find(ctx, q)
			return err
		})
	})
}

// fill makes a response, reused if there is a pool. A failed one goes straight
// back: nobody else has seen it. One whose lookup panicked does not, for the
// same cannot be said. Nor does one whose caller has left: it is on its way to
// nobody, and only its receiver may give it back.
func (r *Runner) fill(pool *objectpool.Pool[Response], from func(*Response) error) (*Response, error) {
	r.running.Enter()
	defer r.running.Leave()
	var resp *Response
	if pool != nil {
		resp = pool.Get()
	} else {
		resp = new(Response)
	}
	if err := from(resp); err != nil {
		resp.Release()
		return nil, err
	}
	return resp, nil
}

// Drain refuses later requests and waits until those under way have ended. When
// ctx ends first, requests that did not start are dropped and the error is a
// *spillway.DrainError.
func (r *Runner) Drain(ctx context.Context) error { return r.exec.drain(ctx) }

// Collector returns the pattern's Prometheus metrics; nil for naive, which
// decides nothing.
func (r *Runner) Collector() prometheus.Collector { return r.exec.collector() }

// Clinicians returns the counts of the directory of clinicians.
func (r *Runner) Clinicians() directory.Stats { return r.people.Stats() }

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
	Peak      int               `json:"peak"` // most lookups that ran at one time

	// ReuseRate is the true share of responses that were reused, 0 to 1; -1
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
	if r.singles != nil {
		single, batch := r.singles.Stats(), r.batches.Stats()
		s.Responses, s.Reused = single.Gets+batch.Gets, single.Reused+batch.Reused
		s.ReuseRate = float64(s.Reused) / float64(max(s.Responses, 1))
	}
	return s
}
