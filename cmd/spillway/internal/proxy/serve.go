package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
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

// Serve listens and passes requests on until ctx ends. Then it stops in the order that loses nothing: it is
// not ready for cfg.Notice, streams are cut, what was admitted is answered, and the listener closes. At each
// value from reload, Serve asks again for the routes and the trust; the rest stays as it was, and a fault
// leaves everything as it was.
func Serve(ctx context.Context, read func() (Config, error), reload <-chan os.Signal, logger *slog.Logger) error {
	cfg, err := read()
	if err != nil {
		return err
	}
	public, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer public.Close()
	var admin net.Listener
	if cfg.Admin != "" {
		if admin, err = net.Listen("tcp", cfg.Admin); err != nil {
			return fmt.Errorf("--admin: %w", err)
		}
		defer admin.Close()
	}
	p := &proxy{cfg: cfg, read: read, reload: reload, logger: logger}
	return p.serve(ctx, public, admin)
}

// proxy is one that serves.
type proxy struct {
	cfg    Config
	read   func() (Config, error)
	reload <-chan os.Signal
	logger *slog.Logger
	rules  atomic.Pointer[rules]
}

func (p *proxy) serve(ctx context.Context, public, admin net.Listener) error {
	cfg, logger := p.cfg, p.logger
	dry := shedlog.New(shedlog.Config{Logger: logger.With("dry_run", true)})
	defer dry.Close()
	lim, err := limiter.New(limiter.Config{Name: cfg.To.Host, Mode: cfg.Mode, Observer: &limiter.Observer{WouldReject: dry.Rejected}})
	if err != nil {
		return err
	}
	dry.Watch(lim)
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	front, err := newDoor(cfg, p.rules.Load, lim, logger, streams)
	if err != nil {
		return err
	}
	now, err := front.rules(cfg)
	if err != nil {
		return err
	}
	p.rules.Store(now)
	service := server(front.handler(p.rules.Load), logger)
	defer service.Close()
	failed := make(chan error, 2)
	go func() { failed <- service.Serve(public) }()

	var up atomic.Bool
	if admin != nil {
		operator := server(operate(lim, &up, logger), logger)
		defer operator.Close()
		go func() { failed <- operator.Serve(admin) }()
	}
	up.Store(true)
	logger.Info("spillway proxy", "listen", public.Addr().String(), "to", cfg.To.String(), "admin", address(admin), "mode", cfg.Mode.String())
	for serving := true; serving; {
		select {
		case err := <-failed:
			return err
		case <-p.reload:
			p.again(front)
		case <-ctx.Done():
			serving = false
		}
	}

	logger.Info("stopping", "notice", cfg.Notice, "drain", cfg.Drain)
	up.Store(false)
	time.Sleep(cfg.Notice)
	endStreams()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Drain)
	defer cancel()
	err = lim.Drain(stopping)
	if left, ok := errors.AsType[*spillway.DrainError](err); ok {
		return fmt.Errorf("after %v of drain %d requests still ran, and %d waited", cfg.Drain, left.Running, left.Dropped)
	}
	if err := service.Shutdown(stopping); err != nil {
		return fmt.Errorf("answers were not taken: %w", err)
	}
	logger.Info("stopped, and nothing was left")
	return nil
}

// again reads the file again.
func (p *proxy) again(front *door) {
	cfg, err := p.read()
	if err == nil {
		var now *rules
		cfg.Deadline = p.cfg.Deadline
		if now, err = front.rules(cfg); err == nil {
			p.rules.Store(now)
			p.logger.Info("read again", "routes", len(cfg.Routes), "trust", len(cfg.Trust))
			return
		}
	}
	p.logger.Error("not read again: everything stays as it was", "error", err)
}

// server serves both protocols without TLS: a client of HTTP/2 has to know that, as gRPC does.
func server(h http.Handler, logger *slog.Logger) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, Protocols: &http.Protocols{},
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug), HTTP2: &http.HTTP2Config{WriteByteTimeout: time.Minute}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

func address(l net.Listener) string {
	if l == nil {
		return "none"
	}
	return l.Addr().String()
}

// operate is what operators ask.
func operate(lim *limiter.Limiter, up *atomic.Bool, logger *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metricsprom.New(metrics.Limiter(lim)))
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", admissionhttp.DebugHandler(lim))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("GET /readyz", admissionhttp.Ready(up.Load, lim.Open))
	mux.HandleFunc("GET /mode", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, lim.Mode()) })
	mux.HandleFunc("PUT /mode/{mode}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			http.Error(w, "pages in a browser may not change the mode", http.StatusForbidden)
			return
		}
		var mode limiter.Mode
		if err := mode.UnmarshalText([]byte(r.PathValue("mode"))); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		lim.SetMode(mode)
		logger.Info("mode", "mode", mode.String(), "until", "a restart")
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}
