// Package serve runs the examples: it is what they would repeat. A service of
// your own needs more, and examples/frameworks/complete shows it.
package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// Build makes the handler of an example, which asks lim first.
type Build func(lim *limiter.Limiter) (http.Handler, error)

// Main is the main function of an example.
func Main(build Build) {
	addr := flag.String("addr", "localhost:8080", "where to listen; port 0 picks a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, build); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, build Build) error {
	mode, err := admissionhttp.ModeFromEnv()
	if err != nil {
		return err
	}
	lim, err := limiter.New(limiter.Config{Name: "http", Mode: mode})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/orders/7, and /broken panics\n", l.Addr())
	return Run(ctx, l, lim, build)
}

// Run serves until ctx ends, then finishes what was admitted.
func Run(ctx context.Context, l net.Listener, lim *limiter.Limiter, build Build) error {
	h, err := build(lim)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(lim.Drain(stopping), server.Shutdown(stopping))
}
