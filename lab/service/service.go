// Package service runs a service in a process of its own and loads it, for the
// experiments that offer one more than it can do.
package service

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/limiter"
)

// Step is the resolution of all time lines.
const Step = 100 * time.Millisecond

// Job is the input of a service.
type Job struct {
	Pattern  string // what bounds it
	Backend  string // what it waits for; empty: the only one
	Work     Work   // of the backend
	Seed     uint64
	Patients int // in SQLite
}

// Served is what a service reports at its end.
type Served struct {
	Usage    usage.Usage
	Samples  []Sample // one a step
	Peak     int      // most requests in the backend at one time
	Says     string   // the limiter about itself
	Began    time.Time
	Arrivals []uint32 // requests that arrived in each step since then
}

// Sample is what bounds the service, at one moment.
type Sample struct {
	At                      time.Time
	Limit, InFlight, Queued int
	ByPriority              map[spillway.Priority]limiter.PriorityStats `json:",omitempty"` // since the start
	Unsafe                  bool                                        // the estimate of a dry run
}

// Serve plays a service until ctx ends, and looks at what bounds it every step. It is
// ready when it listens.
func Serve(ctx context.Context, job *contestant.Job, web *http.Server, look func(*Sample)) (*Served, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer web.Close()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	report, used := &Served{}, usage.Start()
	if err := job.Ready(listener.Addr().String()); err != nil {
		return nil, err
	}
	tick := time.NewTicker(Step)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s := Sample{At: now}
			look(&s)
			report.Samples = append(report.Samples, s)
		case err := <-failed:
			return nil, err
		case <-ctx.Done():
			report.Usage = used.Stop()
			return report, nil
		}
	}
}

// Service is a running service.
type Service struct {
	Address string
	process *contestant.Process
	stop    context.CancelFunc
}

// Start starts a service. The context that it returns ends with the service, for being
// killed is a result.
func Start(ctx context.Context, spec contestant.Spec) (context.Context, *Service, error) {
	var s Service
	var err error
	if s.process, err = contestant.Start(ctx, spec, &s.Address); err != nil {
		return ctx, nil, err
	}
	loading, stop := context.WithCancel(ctx)
	s.stop = stop
	go func() {
		select {
		case <-s.process.Done():
			stop()
		case <-loading.Done():
		}
	}()
	return loading, &s, nil
}

// End stops the service, if it runs, and adds to the run how it ended and what it used
// and did since began.
func (s *Service) End(ctx context.Context, run *results.Run, began time.Time) (Served, error) {
	s.stop()
	var report Served
	exit, err := s.process.Stop(ctx, &report)
	run.Killed, run.Process = exit.Killed, experiment.Process(report.Usage)
	run.Process.PeakRSS, run.Process.PeakStoreCalls = max(run.Process.PeakRSS, exit.PeakRSS), report.Peak
	samples := report.Samples
	for i := range run.Series {
		for len(samples) > 0 && samples[0].At.Sub(began).Seconds() < run.Series[i].At {
			samples = samples[1:]
		}
		if len(samples) > 0 {
			p := &run.Series[i]
			p.Limit, p.InFlight, p.Queued = samples[0].Limit, samples[0].InFlight, samples[0].Queued
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return report, err
}
