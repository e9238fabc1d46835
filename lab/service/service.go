// Package service runs a service in a process of its own and loads it, for the
// experiments that offer one more than it can do.
package service

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/load/usage"
)

// Step is the resolution of all time lines.
const Step = 100 * time.Millisecond

// Limits are flags that all such experiments have.
type Limits struct {
	MostLag   time.Duration `default:"50ms" help:"A run whose clients sent later than that (p99) is made again, twice at most; if they still do, it does not count."`
	MemoryCap int           `default:"2048" least:"0" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
}

// Spec is a contestant under the memory cap.
func (f Limits) Spec(program, role string, input any) contestant.Spec {
	return contestant.Spec{Program: program, Role: role, Input: input, MemoryCap: uint64(f.MemoryCap) << 20}
}

// InTime measures again, twice at most, if the p99 of the send lag was too large. Then it
// gives up: what is sent late comes all at once, and the run would measure a busy machine.
func (f Limits) InTime(measure func() (results.Run, error)) (run results.Run, err error) {
	var late time.Duration
	for range 3 {
		if run, err = measure(); err != nil || run.Killed != "" {
			return run, err
		}
		if late = time.Duration(run.Lag.Quantile(.99)); late <= f.MostLag {
			return run, nil
		}
	}
	return run, fmt.Errorf("the clients sent %v late (p99), more than --most-lag=%v: end what else runs on this machine", late.Round(time.Millisecond), f.MostLag)
}

// Served is what a service reports at its end.
type Served struct {
	Usage    usage.Usage
	Samples  []Sample // one a step
	Began    time.Time
	Arrivals []uint32 // requests that arrived in each step since then
}

// Sample is what bounds the service, at one moment.
type Sample struct {
	At                      time.Time
	Limit, InFlight, Queued int
	Rejected, WouldReject   uint64                                      // since the start
	ByPriority              map[spillway.Priority]limiter.PriorityStats `json:",omitempty"`
	Unsafe                  bool                                        // the estimate of a dry run
	Goroutines              int                                         // of the process
}

// Serve plays a service until ctx ends, and looks at what bounds it every step. It is
// ready when it listens.
func Serve(ctx context.Context, ready contestant.Ready, web *http.Server, look func(*Sample)) (*Served, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer web.Close()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	report, used := &Served{}, usage.Start()
	if err := ready(listener.Addr().String()); err != nil {
		return nil, err
	}
	tick := time.NewTicker(Step)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s := Sample{At: now, Goroutines: runtime.NumGoroutine()}
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
	Loading context.Context // of requests: it ends with the service, for being killed is a result
	process *contestant.Process
	stop    context.CancelFunc
}

// Start starts a service. It ends with ctx, if Measure, Stop or End did not end it before.
func Start(ctx context.Context, spec contestant.Spec) (*Service, error) {
	var s Service
	var err error
	if s.process, err = contestant.Start(ctx, spec, &s.Address); err != nil {
		return nil, err
	}
	s.Loading, s.stop = context.WithCancel(ctx)
	go func() { <-s.process.Done(); s.stop() }()
	return &s, nil
}

// Measure sends the load, with a target for each stretch, and ends the service. The result is of the
// requests intended in the stretch that counts.
func (s *Service) Measure(ctx context.Context, load Load, targets []loadgen.Target) (run results.Run, res *loadgen.Result, served Served, err error) {
	began, _ := load.Window()
	if res, err = load.SendTo(s.Loading, targets); err != nil {
		return run, nil, served, err
	}
	run = experiment.FromLoad(res)
	run.Elapsed = load.Stretches[load.Measured].For.Seconds()
	served, err = s.End(ctx, &run, began)
	return run, res, served, err
}

// Stop stops the service, if it runs, and decodes its report.
func (s *Service) Stop(ctx context.Context, report any) (contestant.Exit, error) {
	s.stop()
	return s.process.Stop(ctx, report)
}

// End stops the service, if it runs, and adds to the run how it ended and what it used
// and did since began.
func (s *Service) End(ctx context.Context, run *results.Run, began time.Time) (Served, error) {
	var report Served
	exit, err := s.Stop(ctx, &report)
	run.Killed, run.Process = exit.Killed, experiment.Process(report.Usage)
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	samples := report.Samples
	for i := range run.Series {
		for len(samples) > 0 && samples[0].At.Sub(began).Seconds() < run.Series[i].At {
			samples = samples[1:]
		}
		if len(samples) > 0 {
			p := &run.Series[i]
			p.Limit, p.InFlight, p.Queued, p.Goroutines = samples[0].Limit, samples[0].InFlight, samples[0].Queued, samples[0].Goroutines
		}
	}
	return report, cmp.Or(err, ctx.Err())
}

// Pause returns after d, or with ctx's error as soon as ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
