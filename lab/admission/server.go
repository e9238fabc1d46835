package admission

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
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

func limiterOf(j service.Job) limiter.Config {
	switch j.Pattern {
	case fixed:
		return limiter.Config{Law: limit.NewFixed(j.Work.Slots)}
	case dry:
		return limiter.Config{Mode: limiter.DryRun}
	case saturated:
		return limiter.Config{Mode: limiter.Off}
	}
	return limiter.Config{}
}

// credential is what the well-behaved clients have: their priority is believed.
const credential = "Bearer lab"

// longest is how long arrivals are counted.
const longest = 8 * time.Minute

// serve is a small HTTP service behind the middleware, in a process of its own.
func serve(ctx context.Context, job *contestant.Job) (any, error) {
	var j service.Job
	if err := job.Input(&j); err != nil {
		return nil, err
	}
	store, err := newBackend(j)
	if err != nil {
		return nil, err
	}
	lim, err := limiter.New(limiterOf(j))
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
	protected := protect(routes(store))
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !admissionhttp.Probe(r) {
			arrivals[min(int(time.Since(began)/service.Step), len(arrivals)-1)].Add(1)
		}
		protected.ServeHTTP(w, r)
	})
	report, err := service.Serve(ctx, job, newServer(counted), func(x *service.Sample) {
		s := lim.Stats()
		x.Limit, x.InFlight, x.Queued, x.ByPriority, x.Unsafe = s.Limit, s.InFlight, s.Queued, s.ByPriority, s.EstimateUnsafe
	})
	if err != nil {
		return nil, err
	}
	report.Began, report.Says = began, lim.Stats().Estimate
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
