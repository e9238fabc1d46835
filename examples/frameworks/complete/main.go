// Command complete is a whole service: routes with priorities and deadlines, refusals,
// metrics, a debug page, and a stop that loses nothing that was admitted.
//
//	SPILLWAY_MODE=dryrun go run ./complete
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	adminAddr := flag.String("admin-addr", "127.0.0.1:9090", "where metrics and the debug page are; it asks for no permission")
	notice := flag.Duration("notice", 0, "when stopping, how long to say \"not ready\" first: as long as your load balancer takes to notice")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := listenAndRun(ctx, *addr, *adminAddr, *notice); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func listenAndRun(ctx context.Context, addr, adminAddr string, notice time.Duration) error {
	public, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer public.Close()
	admin, err := net.Listen("tcp", adminAddr)
	if err != nil {
		return err
	}
	defer admin.Close()
	fmt.Printf("http://%s/orders/7; for you: http://%s/debug/spillway/\n", public.Addr(), admin.Addr())
	return Run(ctx, limiter.Config{Name: "http"}, public, admin, notice)
}

func readOrder(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "order", r.PathValue("id")) }

func placeOrder(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, "no order", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func export(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "all orders") }
