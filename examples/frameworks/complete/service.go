package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/metricsprom"
	"github.com/spillway-go/spillway/shedlog"
)

// Run serves until ctx ends, then stops in the order that loses nothing.
func Run(ctx context.Context, cfg limiter.Config, public, admin net.Listener, notice time.Duration) error {
	mode, err := admissionhttp.ModeFromEnv() // SPILLWAY_MODE: off, dryrun or enforce
	if err != nil {
		return err
	}
	cfg.Mode = mode
	dry := shedlog.New(shedlog.Config{Logger: slog.With("dry_run", true)}) // what a dry run would have refused
	defer dry.Close()
	cfg.Observer = limiter.Observers(cfg.Observer, &limiter.Observer{WouldReject: dry.Rejected})
	lim, err := limiter.New(cfg)
	if err != nil {
		return err
	}
	dry.Watch(lim)
	admit, err := admissionhttp.New(admissionhttp.Config{
		Limiter: lim,
		Deadlines: map[spillway.Priority]time.Duration{
			spillway.Critical: 2 * time.Second, spillway.Normal: 5 * time.Second, spillway.Low: 30 * time.Second,
		},
		Logger: slog.Default(), // one line in ten seconds while it sheds
	})
	if err != nil {
		return err
	}

	var up atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", admissionhttp.Ready(up.Load, lim.Open))
	mux.Handle("GET /orders/{id}", admit(http.HandlerFunc(readOrder)))
	orders := http.MaxBytesHandler(admit(http.HandlerFunc(placeOrder)), 1<<20) // outside: it closes the connection of what is longer
	mux.Handle("POST /orders", admissionhttp.WithPriority(spillway.Critical, orders))
	mux.Handle("GET /export", admissionhttp.WithPriority(spillway.Low, admit(http.HandlerFunc(export))))
	service := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	defer service.Close()

	registry := prometheus.NewRegistry()
	registry.MustRegister(metricsprom.New(metrics.Limiter(lim)))
	inside := http.NewServeMux()
	inside.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	inside.Handle("GET /debug/spillway/", admissionhttp.DebugHandler(lim))
	inside.HandleFunc("PUT /mode/{mode}", func(w http.ResponseWriter, r *http.Request) { setMode(lim, w, r) })
	operator := &http.Server{Handler: inside, ReadHeaderTimeout: 5 * time.Second}
	defer operator.Close()

	failed := make(chan error, 2)
	up.Store(true)
	go func() { failed <- service.Serve(public) }()
	go func() { failed <- operator.Serve(admin) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done(): // SIGTERM
	}

	up.Store(false)    // /readyz answers 503,
	time.Sleep(notice) // which load balancers have to notice
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(lim.Drain(stopping), service.Shutdown(stopping))
}

// setMode changes the mode without a restart: curl -X PUT 127.0.0.1:9090/mode/dryrun
func setMode(lim *limiter.Limiter, w http.ResponseWriter, r *http.Request) {
	var mode limiter.Mode
	if err := mode.UnmarshalText([]byte(r.PathValue("mode"))); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	lim.SetMode(mode)
	w.WriteHeader(http.StatusNoContent)
}
