package admission

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// The ways in which the service is run.
const (
	ours      = "spillway"  // limiter.Config{}: no configuration
	fixed     = "fixed"     // the same gate, told the right limit
	dry       = "dry run"   // as spillway, refusing nothing
	saturated = "saturated" // no limit, and as many clients as keep the backend busy
	calm      = "calm"      // as spillway, without hostile clients
)

// credential is what the well-behaved clients have: their priority is believed.
const credential = "Bearer lab"

// longest is how long arrivals are counted.
const longest = 8 * time.Minute

// serve is a small HTTP service behind the middleware, in a process of its own.
func serve(ctx context.Context, j service.Job, ready contestant.Ready) (*service.Served, error) {
	configs := map[string]limiter.Config{fixed: {Law: limit.NewFixed(j.Work.Slots)}, dry: {Mode: limiter.DryRun}, saturated: {Mode: limiter.Off}}
	lim, err := limiter.New(configs[j.Pattern])
	if err != nil {
		return nil, err
	}
	defer lim.Close()
	protect, err := admissionhttp.New(admissionhttp.Config{
		Limiter: lim,
		Trusted: func(r *http.Request) bool { return r.Header.Get("Authorization") == credential },
	})
	if err != nil {
		return nil, err
	}
	began, arrivals := time.Now(), make([]atomic.Uint32, longest/service.Step)
	protected := protect(routes(newBackend(j)))
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !admissionhttp.Probe(r) {
			arrivals[min(int(time.Since(began)/service.Step), len(arrivals)-1)].Add(1)
		}
		protected.ServeHTTP(w, r)
	})
	report, err := service.Serve(ctx, ready, newServer(counted), func(x *service.Sample) {
		s := lim.Stats()
		x.Limit, x.InFlight, x.Queued = s.Limit, s.InFlight, s.Queued
		x.Rejected, x.WouldReject, x.ByPriority, x.Unsafe = s.Rejected, s.WouldReject, s.ByPriority, s.EstimateUnsafe
	})
	if err != nil {
		return nil, err
	}
	report.Began = began
	for i := range min(int(time.Since(began)/service.Step)+1, len(arrivals)) {
		report.Arrivals = append(report.Arrivals, arrivals[i].Load())
	}
	return report, nil
}

// newServer has the bounds that a server on the internet needs.
func newServer(h http.Handler) *http.Server {
	s := &http.Server{
		Handler:           h,
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

// longestBody is the most that is read of a body.
const longestBody = 1 << 20

func routes(store backend) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	ask := func(w http.ResponseWriter, r *http.Request) {
		switch err := store.Ask(r.Context()); {
		case err == nil:
			_, _ = io.WriteString(w, "done\n")
		case errors.Is(err, context.DeadlineExceeded):
			http.Error(w, "too late", http.StatusGatewayTimeout)
		default: // the client left: no answer is read
			http.Error(w, "gone", 499)
		}
	}
	mux.HandleFunc("GET /work", ask)
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, longestBody)); err != nil {
			http.Error(w, "too long, or too late", http.StatusBadRequest)
			return
		}
		ask(w, r)
	})
	return mux
}

// The backends.
const (
	nWay      = "N-way"     // so many at a time, first come, first served: more at once only wait
	degrading = "degrading" // more at once slow each other down, and the total falls
)

// backend is what the service waits for.
type backend interface {
	// Ask returns when the answer is there, or when ctx ends.
	Ask(ctx context.Context) error
}

func newBackend(j service.Job) backend {
	if j.Backend == degrading {
		return service.NewDatabase(j.Work, j.Seed)
	}
	b := &nway{work: j.Work, random: rand.New(rand.NewPCG(j.Seed, 2)), free: make(chan time.Time, j.Work.Slots)}
	for range j.Work.Slots {
		b.free <- time.Time{}
	}
	return b
}

// nway has Slots slots and a hidden queue. A caller that leaves takes its call out of
// the queue; a call in a slot runs to its end.
//
// A slot's next call begins when the one before was to end, not when the timer fired:
// its capacity is exact as long as some wait, also on a busy machine.
type nway struct {
	work service.Work
	free chan time.Time // the slots that are free, and since when; who waits for one is served in order

	mu     sync.Mutex
	random *rand.Rand
}

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
	b.mu.Lock()
	end := begin.Add(b.work.Time(b.random))
	b.mu.Unlock()
	done := make(chan struct{})
	time.AfterFunc(time.Until(end), func() { close(done); b.free <- end })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
