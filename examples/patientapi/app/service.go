package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/probe"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
)

// service is one run, from ready to drained.
type service struct {
	cmd        *Command
	base       store
	store      *simulated.Injected
	clinicians *directory.Directory
	runner     *patterns.Runner
	api        *httpapi.API
	logger     *slog.Logger
	admin      string // address of the admin listener; empty without one

	notice func(time.Duration) // waits until load balancers have noticed that it is not ready
}

func (s *service) run(ctx context.Context, listener net.Listener, stdout io.Writer) error {
	srv := server(s.api, s.cmd.Deadline.Timeout, s.logger)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(bounded(srv, listener, s.cmd.Listen.MaxConnections)) }()

	s.api.SetReady(true)
	measured := probe.Start()
	s.announce(stdout, listener.Addr().String())

	var err error
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
	err := s.runner.Drain(ctx)
	if srv.Shutdown(ctx) != nil && err == nil {
		err = errors.New("connections were still busy")
	}
	_ = srv.Close() // what is left is cut off; nothing, usually
	if err != nil {
		return fmt.Errorf("shutdown ran out of time (%v): %w; give it more with --shutdown-timeout", s.cmd.Shutdown.Timeout, err)
	}
	return nil
}

func (s *service) announce(stdout io.Writer, addr string) {
	if s.cmd.JSON {
		_ = json.NewEncoder(stdout).Encode(Ready{Ready: true, Addr: addr, Admin: s.admin, PID: os.Getpid()})
		return
	}
	fmt.Fprintf(stdout, "patient API on http://%s/ (pattern %s, store %s, %d patients); Ctrl-C stops it\n",
		addr, s.cmd.Pattern.Name, s.cmd.Store.Kind, s.cmd.Store.Patients)
}

func (s *service) report(usage probe.Usage) *Report {
	r := &Report{
		Pattern: s.cmd.Pattern.Name, Store: s.cmd.Store.Kind, Requests: s.api.Outcomes(), Runner: s.runner.Stats(), Process: usage,
		StoreCalls: s.store.Calls(), StoreFailures: s.store.Failures(),
		StoreMeanLatency: s.store.MeanLatency().Seconds(), PeakStoreCalls: s.store.PeakCalls(),
		Clinicians: s.clinicians.Stats(),
	}
	if db, ok := s.base.(*sqlite.Store); ok {
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
	if r.Abandoned != "" {
		fmt.Fprintln(stdout, r.Abandoned)
	}
}
