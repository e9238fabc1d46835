package overload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

// RoleService is the service of a scene, which takes a Job. The program patient plays it, too, for what
// is heavy.
const RoleService = "overload-service"

const program = "patient"

// Job is the input of a service.
type Job struct {
	Scene, Backend string
	Does           string // what a program does that has several services
	Contestant     string
	Slots          int           // of a semaphore or a pool
	Wait           time.Duration // for the semaphore; 0: until the deadline
	Front          bool          // Spillway stands at the front of its process
	Work           service.Work  // of the model of a database
	Seed           uint64
	URL            string // of PostgreSQL's database
	Pace           float64
}

func (j Job) lasts(d time.Duration) time.Duration { return lasts(j.Pace, d) }

// Handler makes what a service answers by. The Front is what bounds it.
type Handler func(ctx context.Context, j Job, f *Front) (http.Handler, error)

// Front is what stands in front of the handlers of a service.
type Front struct {
	failsafe func() *Guard
	looks    []func(*service.Sample)
	ends     []func()
	web      *http.Server
}

// AtEnd has a function called when the service ends.
func (f *Front) AtEnd(end func()) { f.ends = append(f.ends, end) }

// Serve plays the service of a scene until ctx ends: by one of these handlers, or by the scene's own. A
// program with failsafe-go knows that contestant.
func Serve(ctx context.Context, j Job, ready contestant.Ready, more map[string]Handler, failsafe func() *Guard) (*service.Served, error) {
	handler := more[j.Does]
	for _, s := range allScenes {
		if handler == nil && s.name == j.Scene {
			handler = s.handler
		}
	}
	if handler == nil {
		return nil, fmt.Errorf("this program has no service for %q of %q", j.Does, j.Scene)
	}
	f := &Front{failsafe: failsafe, web: newServer()}
	defer func() {
		for _, end := range f.ends {
			end()
		}
	}()
	answer, err := handler(ctx, j, f)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var mu sync.Mutex
	var arrivals []uint32
	f.web.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			step := int(time.Since(began) / service.Step)
			mu.Lock()
			for len(arrivals) <= step {
				arrivals = append(arrivals, 0)
			}
			arrivals[step]++
			mu.Unlock()
		}
		answer.ServeHTTP(w, r)
	})
	report, err := service.Serve(ctx, ready, f.web, func(x *service.Sample) {
		for _, look := range f.looks {
			look(x)
		}
	})
	if report != nil {
		mu.Lock()
		defer mu.Unlock()
		report.Began, report.Arrivals = began, arrivals
	}
	return report, err
}

// newServer has the bounds that a server on the internet needs.
func newServer() *http.Server {
	s := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		Protocols:         new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// Admit is the middleware with a limiter. Most bounds the limit; 0: nothing does.
func (f *Front) Admit(cfg limiter.Config, most int, web admissionhttp.Config) (func(http.Handler) http.Handler, error) {
	lim, err := limiter.New(cfg)
	if err != nil {
		return nil, err
	}
	f.AtEnd(lim.Close)
	f.looks = append(f.looks, func(x *service.Sample) {
		s := lim.Stats()
		x.Limit, x.InFlight, x.Queued, x.Rejected = x.Limit+s.Limit, x.InFlight+s.InFlight, x.Queued+s.Queued, x.Rejected+s.Rejected
		x.WouldReject, x.ByPriority, x.Unsafe = s.WouldReject, s.ByPriority, s.EstimateUnsafe
	})
	web.Limiter = lim
	protect, err := admissionhttp.New(web)
	return protect, errors.Join(err, lim.SetBounds(0, most))
}

// Guard is the contestant of the job.
func (f *Front) Guard(j Job) (g *Guard, err error) {
	switch {
	case j.Contestant == Failsafe && f.failsafe != nil:
		g = f.failsafe()
	case j.Contestant == Semaphore:
		g = SemaphoreFor(j.Slots, j.Wait)
	default:
		g, err = newGuard(j.Contestant, j.Slots, j.Front)
	}
	if err != nil {
		return nil, err
	}
	f.AtEnd(func() { g.Close() })
	f.looks = append(f.looks, func(s *service.Sample) { s.Limit, s.InFlight, s.Queued = g.Limit(), g.Running(), g.Waiting() })
	return g, nil
}

// Work is what a service does for a request.
type Work func(w http.ResponseWriter, r *http.Request) error

// Behind answers requests by work, if and when the guard admits them. A request has the deadline and
// the priority of its headers; without a deadline there, the usual one; 0: none.
func (g *Guard) Behind(work Work, usual time.Duration) http.Handler {
	return FromHeaders(usual, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := g.Do(r.Context(), func(ctx context.Context) error {
			err := work(w, r.WithContext(ctx))
			if err != nil && ctx.Err() != nil { // a driver says only that it was interrupted
				return ctx.Err()
			}
			return err
		})
		answer(w, r, err)
	}))
}

// ServeHTTP answers a request by the work, whatever bounds it.
func (work Work) ServeHTTP(w http.ResponseWriter, r *http.Request) { answer(w, r, work(w, r)) }

// answer says what became of a request. What ended early has an answer that nobody reads, or is too late.
func answer(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case err == nil: // an answer may be empty
	case errors.Is(err, spillway.ErrRejected):
		w.Header().Set("Connection", "close") // net/http would wait for the rest of a body
		http.Error(w, "refused", http.StatusServiceUnavailable)
	case errors.Is(err, ErrRequest):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.Context().Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		w.Header().Set("Connection", "close")
		http.Error(w, "too late", http.StatusGatewayTimeout)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// ErrRequest is the error of work whose request is at fault.
var ErrRequest = errors.New("overload: a request that cannot be answered")

type priorityKey struct{}

// Prioritized is the context with the priority of the request's header. An API may have given the request that
// of its route.
func Prioritized(ctx context.Context) context.Context {
	if p, ok := ctx.Value(priorityKey{}).(spillway.Priority); ok {
		return spillway.WithPriority(ctx, p)
	}
	return ctx
}

// FromHeaders gives each request the deadline and the priority of its headers, or the usual deadline; 0: none.
func FromHeaders(usual time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, deadline := r.Context(), usual
		if ms, err := strconv.Atoi(r.Header.Get(admissionhttp.HeaderDeadline)); err == nil && ms > 0 {
			deadline = time.Duration(ms) * time.Millisecond
		}
		if deadline > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, deadline)
			defer cancel()
		}
		var p spillway.Priority
		_ = p.UnmarshalText([]byte(r.Header.Get(admissionhttp.HeaderPriority))) // an error: normal
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, priorityKey{}, p)))
	})
}

// nway is a database with so many slots and a hidden queue: more queries at once only wait. A caller
// that leaves takes its call out of the queue; a call in a slot runs to its end.
//
// A slot's next call begins when the one before was to end, not when the timer fired:
// its capacity is exact as long as some wait, also on a busy machine.
type nway struct {
	work service.Work
	free chan time.Time // the slots that are free, and since when; who waits for one is served in order
	seed uint64
	n    atomic.Uint64
}

func newNWay(work service.Work, seed uint64) *nway {
	b := &nway{work: work, seed: seed, free: make(chan time.Time, work.Slots)}
	for range work.Slots {
		b.free <- time.Time{}
	}
	return b
}

// Ask returns when the answer is there, or when ctx ends.
func (b *nway) Ask(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	begin := time.Now()
	select {
	case since := <-b.free:
		if since.After(begin) {
			begin = since
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	end := begin.Add(b.work.Time(rand.New(rand.NewPCG(b.seed, b.n.Add(1)))))
	done := make(chan struct{})
	time.AfterFunc(time.Until(end), func() { close(done); b.free <- end })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
