package admission

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// The ways in which the service is run.
const (
	Spillway  = "spillway"  // limiter.Config{}: no configuration
	Fixed     = "fixed"     // the same gate, told the right limit
	DryRun    = "dry run"   // as spillway, refusing nothing
	Saturated = "saturated" // no limit, and as many clients as keep the backend busy
	Calm      = "calm"      // as spillway, without hostile clients
)

// job is the input of the service.
type job struct {
	Backend, Pattern string
	Work             overload.Work
	Seed             uint64
}

// limiterConfig is the limiter of a pattern.
func (j job) limiterConfig() limiter.Config {
	switch j.Pattern {
	case Fixed:
		return limiter.Config{Law: limit.NewFixed(j.Work.Slots)}
	case DryRun:
		return limiter.Config{Mode: limiter.DryRun}
	case Saturated:
		return limiter.Config{Mode: limiter.Off}
	}
	return limiter.Config{}
}

// credential is what the well-behaved clients have: their priority is believed.
const credential = "Bearer lab"

// step is the resolution of all time lines.
const step = 100 * time.Millisecond

// served is what the service reports at its end.
type served struct {
	Usage    usage.Usage
	Began    time.Time
	Arrivals []uint32 // requests that arrived in each step since Began, probes apart
	Samples  []sample // one a step
	Estimate string   // of a dry run, in words
}

// sample is the limiter at one moment; counts are by priority, lowest first, since the
// start.
type sample struct {
	At                      time.Time
	Limit, InFlight, Queued int
	Offered, Refused, Would [priorities]uint64
	Left                    [priorities]uint64 // while they waited
	Unsafe                  bool
}

const priorities = int(spillway.Critical-spillway.Low) + 1

func look(lim *limiter.Limiter, now time.Time) (sample, string) {
	s := lim.Stats()
	out := sample{At: now, Limit: s.Limit, InFlight: s.InFlight, Queued: s.Queued, Unsafe: s.EstimateUnsafe}
	for p, c := range s.ByPriority {
		i := int(p - spillway.Low)
		out.Offered[i], out.Refused[i], out.Would[i], out.Left[i] = c.Offered, c.Rejected, c.WouldReject, c.Cancelled
	}
	return out, s.Estimate
}

// longest is how long a service can be watched.
const longest = 10 * time.Minute

// service is a small HTTP service behind the middleware, in a process of its own.
// It is ready when it listens.
func service(ctx context.Context, contestantJob *contestant.Job) (any, error) {
	var j job
	if err := contestantJob.Input(&j); err != nil {
		return nil, err
	}
	store, err := newBackend(j.Backend, j.Work, j.Seed)
	if err != nil {
		return nil, err
	}
	lim, err := limiter.New(j.limiterConfig())
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
	began := time.Now()
	arrivals := make([]atomic.Uint32, longest/step)
	protected := protect(routes(store))
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !admissionhttp.Probe(r) {
			arrivals[min(int(time.Since(began)/step), len(arrivals)-1)].Add(1)
		}
		protected.ServeHTTP(w, r)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := newServer(counted)
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	p := usage.Start()
	if err := contestantJob.Ready(listener.Addr().String()); err != nil {
		return nil, err
	}
	report := served{Began: began}
	tick := time.NewTicker(step)
	defer tick.Stop()
	for up := true; up; {
		select {
		case now := <-tick.C:
			var s sample
			s, report.Estimate = look(lim, now)
			report.Samples = append(report.Samples, s)
		case <-ctx.Done():
			up = false
		case err := <-failed:
			return nil, err
		}
	}
	report.Usage = p.Stop()
	for i := range min(int(time.Since(began)/step)+1, len(arrivals)) {
		report.Arrivals = append(report.Arrivals, arrivals[i].Load())
	}
	return report, web.Close()
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
			status := http.StatusBadRequest
			if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
				status = http.StatusRequestEntityTooLarge
			} else if errors.Is(err, os.ErrDeadlineExceeded) {
				status = http.StatusRequestTimeout
			}
			http.Error(w, "no such body", status)
			return
		}
		ask(w, r)
	})
	return mux
}
