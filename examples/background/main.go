// Command background is an HTTP server that hands work to a pool and answers
// before it is done: 202 when the job was accepted, 503 with Retry-After when
// it was not. It shows what such a server has to get right: jobs outlive their
// request, a full queue says so at once, and a stop says what was not done.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spillway-go/spillway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `background accepts reminders over HTTP and sends them after it has answered.

  background                                   on http://localhost:8080
  background -workers 2 -queue 3 -work 2s      small enough to fill by hand
  curl -i --json '{"patient":"P000042","text":"tomorrow at 9"}' localhost:8080/reminders

  202  accepted: it will be sent, or reported as abandoned when the server stops
  503  not accepted: nothing will be sent; Retry-After says when to try again
  4xx  not a reminder; what is wrong with it is listed

/livez answers while the process lives, /readyz until it is told to stop.
Ctrl-C stops: requests are answered for at most -finish, then those accepted are
sent for at most -drain, and what was not is listed. Exit codes: 0 everything accepted was sent; 1 something
was abandoned, or the server failed; 2 bad input.

`

// settings are what the command line can say.
type settings struct {
	addr           string
	workers, queue int
	work           time.Duration
	stop           stopping
}

// stopping is how long each step of a stop may take.
type stopping struct{ notice, finish, drain time.Duration }

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("background", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&s.addr, "addr", "localhost:8080", "where to listen; port 0 picks a free one")
	flags.IntVar(&s.workers, "workers", 0, "reminders sent at once; 0 leaves it to the pool")
	flags.IntVar(&s.queue, "queue", 0, "accepted reminders that may wait for a worker; 0 leaves it to the pool")
	flags.DurationVar(&s.work, "work", 200*time.Millisecond, "how long sending one takes")
	flags.DurationVar(&s.stop.notice, "notice", 0, "when stopping, how long to say \"not ready\" before refusing; give your load balancer time to notice")
	flags.DurationVar(&s.stop.finish, "finish", 5*time.Second, "when stopping, how long requests under way may still take")
	flags.DurationVar(&s.stop.drain, "drain", 10*time.Second, "when stopping, how long accepted reminders may still take")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected %q: settings are flags, see -h", flags.Arg(0))
	}
	if min(s.work, s.stop.notice, s.stop.finish, s.stop.drain) < 0 {
		return s, errors.New("-work, -notice, -finish and -drain cannot be negative")
	}
	return s, nil
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "background:", err)
		return 2
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	svc, err := newService(s.workers, s.queue, pretendToSend(s.work), log)
	if err != nil {
		fmt.Fprintln(stderr, "background:", err)
		return 2
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		fmt.Fprintln(stderr, "background:", err)
		return 1
	}
	fmt.Fprintf(stdout, "accepting reminders on http://%s/reminders\n", listener.Addr())
	left, err := svc.serve(ctx, listener, s.stop)
	if err != nil {
		fmt.Fprintln(stderr, "background:", err)
		return 1
	}
	fmt.Fprint(stdout, left)
	if len(left.abandoned) > 0 {
		return 1
	}
	return 0
}

// serve answers until ctx ends, then stops in the order that loses least: say
// "not ready", finish the requests, drain the jobs. Each step has a time of its
// own, so that a slow client does not take that of the jobs.
func (s *service) serve(ctx context.Context, listener net.Listener, stop stopping) (leftovers, error) {
	handler, err := s.handler()
	if err != nil {
		return leftovers{}, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return leftovers{}, err
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	time.Sleep(stop.notice)
	ctx = context.WithoutCancel(ctx)
	finishing, cancel := context.WithTimeout(ctx, stop.finish)
	defer cancel()
	if err := server.Shutdown(finishing); err != nil {
		s.log.Warn("requests were cut off", "error", err)
		_ = server.Close()
	}
	draining, cancel := context.WithTimeout(ctx, stop.drain)
	defer cancel()
	err = s.pool.Drain(draining)
	if cut, ok := errors.AsType[*spillway.DrainError](err); ok {
		s.log.Warn("jobs were abandoned", "dropped", cut.Dropped, "running", cut.Running)
	}
	return s.leftovers(), nil
}

// pretendToSend stands for the slow thing that a request must not wait for.
func pretendToSend(d time.Duration) func(context.Context, reminder) error {
	return func(ctx context.Context, _ reminder) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
