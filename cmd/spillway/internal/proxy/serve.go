package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metricsprom"
	"github.com/spillway-go/spillway/shedlog"
)

// Serve listens and passes requests on until ctx ends. Then it stops in the order that loses nothing: it is
// not ready for cfg.Notice, streams end, what was admitted is answered, and the listener closes.
func Serve(ctx context.Context, cfg Config, logger *slog.Logger) error {
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
	return serve(ctx, cfg, logger, public, admin)
}

func serve(ctx context.Context, cfg Config, logger *slog.Logger, public, admin net.Listener) error {
	dry := shedlog.New(shedlog.Config{Logger: logger.With("dry_run", true)})
	defer dry.Close()
	lim, err := limiter.New(limiter.Config{Name: cfg.To.Host, Mode: cfg.Mode, Observer: &limiter.Observer{WouldReject: dry.Rejected}})
	if err != nil {
		return err
	}
	dry.Watch(lim)
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	front, err := handler(cfg, lim, logger, streams)
	if err != nil {
		return err
	}
	service := server(front, logger)
	defer service.Close()
	failed := make(chan error, 2)
	go func() { failed <- service.Serve(public) }()

	var up admissionhttp.Switch
	if admin != nil {
		operator := server(operate(lim, &up), logger)
		defer operator.Close()
		go func() { failed <- operator.Serve(admin) }()
	}
	up.Set(true)
	logger.Info("spillway proxy", "listen", public.Addr().String(), "to", cfg.To.String(), "admin", address(admin), "mode", cfg.Mode.String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}

	logger.Info("stopping", "notice", cfg.Notice, "drain", cfg.Drain)
	up.Set(false)
	time.Sleep(cfg.Notice)
	endStreams()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Drain)
	defer cancel()
	return errors.Join(lim.Drain(stopping), service.Shutdown(stopping))
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
func operate(lim *limiter.Limiter, up *admissionhttp.Switch) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metricsprom.NewLimiter(lim))
	mux := http.NewServeMux()
	mux.Handle("GET /", admissionhttp.DebugHandler(lim))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("GET /readyz", admissionhttp.Ready(up, lim))
	mux.HandleFunc("PUT /mode/{mode}", func(w http.ResponseWriter, r *http.Request) {
		mode, err := limiter.ParseMode(r.PathValue("mode"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		lim.SetMode(mode)
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}
