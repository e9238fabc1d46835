package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	process "github.com/spillway-go/spillway/load/usage"
)

// service is one run, from opened to drained.
type service struct {
	cmd    *Command
	logger *slog.Logger
	notice func(time.Duration) // waits until load balancers have noticed that it is not ready

	handlers sync.RWMutex // each of them reads

	parts
	closers []func() // of the parts, in the order in which they were opened
}

func (s *service) run(ctx context.Context, stdout io.Writer) error {
	defer s.heedHangups()()
	srv := server(s.held(s.fhir.Beside(s.api)), s.cmd.Deadline.Timeout, s.logger)
	failed := make(chan error, 1)
	serve, err := s.cmd.TLS.serve(srv, s.logger)
	if err != nil {
		return err
	}
	go func() { failed <- serve(bounded(srv, s.listener, s.cmd.Listen.MaxConnections)) }()

	s.api.SetReady(true)
	measured := process.Start()
	s.announce(stdout, s.listener.Addr().String())

	select {
	case <-ctx.Done():
		err = s.shutdown(srv)
		<-failed
	case err = <-failed:
		_ = s.runner.Drain(context.Background()) // nothing is served: it is empty soon
	}
	report := s.report(measured.Stop())
	if err != nil {
		report.Abandoned = err.Error()
	}
	s.tell(stdout, report)
	return err
}

// shutdown stops in the order in which clients notice least: not ready; serve on while
// load balancers notice; refuse what still comes, with 503, and finish what was
// admitted; and only then close connections, each once its answer is sent.
func (s *service) shutdown(srv *http.Server) error {
	s.api.SetReady(false)
	ctx, cancel := context.WithTimeout(context.Background(), s.cmd.Shutdown.DrainDelay+s.cmd.Shutdown.Timeout)
	defer cancel()
	s.notice(s.cmd.Shutdown.DrainDelay)
	exporting := make(chan error, 1)
	go func() { exporting <- s.exporting.drain(ctx) }() // a queue that does not answer takes no time from callers
	err := s.runner.Drain(ctx)
	if srv.Shutdown(ctx) != nil && err == nil {
		err = errors.New("connections were still busy")
	}
	_ = srv.Close() // what is left is cut off; nothing, usually
	s.settle()
	err = errors.Join(<-exporting, err)
	if err != nil {
		return fmt.Errorf("shutdown ran out of time (%v): %w; give it more with --shutdown-timeout", s.cmd.Shutdown.Timeout, err)
	}
	return nil
}

// held lets settle wait for the handler.
func (s *service) held(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handlers.RLock()
		defer s.handlers.RUnlock()
		next.ServeHTTP(w, r)
	})
}

// mostSettling is how long settle waits: a handler notices soon that its connection is
// cut, and its record takes a commit.
const mostSettling = 2 * time.Second

// settle waits for handlers whose connections are cut: what they have sent goes on record
// when they return, and the parts are closed next.
func (s *service) settle() {
	none := make(chan struct{})
	go func() {
		s.handlers.Lock()
		defer s.handlers.Unlock()
		close(none)
	}()
	select {
	case <-none:
	case <-time.After(mostSettling):
	}
}

func (s *service) announce(stdout io.Writer, addr string) {
	if s.cmd.JSON {
		_ = json.NewEncoder(stdout).Encode(Ready{Ready: true, Addr: addr, Admin: s.admin, PID: os.Getpid()})
		return
	}
	fmt.Fprintf(stdout, "patient API on %s://%s/ (pattern %s, store %s, %d patients); Ctrl-C stops it\n",
		s.cmd.TLS.scheme(), addr, s.cmd.Pattern.Name, s.cmd.Store.kind(), s.cmd.Store.Patients)
	if example := s.callers.example(s.cmd.TLS, addr); example != "" {
		fmt.Fprintln(stdout, example)
	}
}

func (s *service) report(used process.Usage) *Report {
	r := &Report{
		Pattern: s.cmd.Pattern.Name, Store: s.cmd.Store.kind(), Requests: s.api.Outcomes(), Runner: s.runner.Stats(), Process: used,
		StoreCalls: s.store.Calls(), StoreFailures: s.store.Failures(),
		StoreMeanLatency: s.store.MeanLatency().Seconds(), PeakStoreCalls: s.store.PeakCalls(),
		Clinicians: s.clinicians.Stats(), Audit: s.records.stats(),
	}
	if db, ok := s.base.(interface{ Connections() patientapi.Connections }); ok {
		c := db.Connections()
		r.Connections = &c
	}
	return r
}

func (s *service) tell(stdout io.Writer, r *Report) {
	if s.cmd.JSON {
		_ = json.NewEncoder(stdout).Encode(r)
		return
	}
	q, u := r.Requests, r.Process
	fmt.Fprintf(stdout, "served %d ok, %d refused, %d errors, %d timeouts, %d bad input, %d left early\n",
		q.OK, q.Rejected, q.Error, q.Timeout, q.BadInput, q.Abandoned)
	fmt.Fprintf(stdout, "at most %d lookups at one time, %d goroutines, %d MiB; %.1f s of processor time\n",
		r.Runner.Peak, u.PeakGoroutines, u.PeakRSS>>20, u.CPUSeconds)
	if r.Runner.ReuseRate >= 0 {
		fmt.Fprintf(stdout, "%.1f %% of responses were reused\n", 100*r.Runner.ReuseRate)
	}
	if a := r.Audit; a != nil {
		fmt.Fprintf(stdout, "%d accesses on record, with %d commits; %d could not be recorded\n", a.Recorded, a.Commits, a.Failed)
	}
	if r.Abandoned != "" {
		fmt.Fprintln(stdout, r.Abandoned)
	}
}
