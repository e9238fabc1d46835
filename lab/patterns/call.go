package patterns

import (
	"context"
	"sync"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/probe"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// job is the input of a contestant.
type job struct {
	Pattern    string
	Requests   int
	Clients    int
	Workers    int
	QueueSize  int
	QueueWait  time.Duration
	MinLatency time.Duration
	MaxLatency time.Duration
	ErrorRate  float64
	Patients   int
	Seed       uint64
	Database   string // path of the SQLite file; empty: the simulated store
	WarmUp     bool   // answer every client once before measuring
}

func (c Config) job(l load, pattern string, trial experiment.Trial) job {
	return job{
		Pattern: pattern, Requests: l.requests, Clients: l.clients, Workers: l.workers,
		QueueSize: c.QueueSize, QueueWait: c.QueueWait, MinLatency: c.MinLatency, MaxLatency: c.MaxLatency,
		ErrorRate: c.ErrorRate, Patients: c.Patients, Seed: trial.Seed,
	}
}

// params are the settings that the judge and the report need.
func (j job) params() map[string]any {
	return map[string]any{
		"requests": j.Requests, "clients": j.Clients, "workers": j.Workers, "queue_size": j.QueueSize,
		"queue_wait_ms": ms(j.QueueWait), "min_latency_ms": ms(j.MinLatency), "max_latency_ms": ms(j.MaxLatency),
		"error_rate": j.ErrorRate,
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (j job) id(n uint64) string { return patientapi.FormatID(j.number(n)) }

// simulatedStore is the store of the published set-up.
func (j job) simulatedStore() (*simulated.Injected, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return nil, err
	}
	return simulated.Inject(people, simulated.Config{
		MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed,
	})
}

// call is the contestant of the published set-up: load generator, pattern and
// simulated store in one process, joined by function calls.
func call(ctx context.Context, j job) (results.Run, error) {
	store, err := j.simulatedStore()
	if err != nil {
		return results.Run{}, err
	}
	runner, err := service.New(j.Pattern, service.Config{
		Workers: j.Workers, QueueSize: j.QueueSize, QueueWait: j.QueueWait,
	})
	if err != nil {
		return results.Run{}, err
	}
	look := func(ctx context.Context, n uint64) loadgen.Outcome {
		found, err := lookup(ctx, runner, store, j.id(n))
		if err == nil {
			found.Release()
		}
		return loadgen.FromError(err)
	}
	run, err := j.measure(ctx, look, func() service.Stats { return runner.Stats() })
	if err != nil {
		return run, err
	}
	run.Process.PeakStoreCalls = store.PeakCalls()
	run.Extra["store_latency_ms"] = ms(store.MeanLatency())
	drain, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return run, runner.Drain(drain)
}

// patients is a store of the patient API.
type patients interface {
	Patient(ctx context.Context, id string, dst *patientapi.Patient) error
}

// lookup finds a patient under the runner's pattern.
func lookup(ctx context.Context, runner *service.Runner, store patients, id string) (*service.Answer[patientapi.Patient], error) {
	return service.Run(ctx, runner, func(ctx context.Context, p *patientapi.Patient) error { return store.Patient(ctx, id, p) })
}

// measure sends the load to look and reads what the process used. Reuse is that
// of the load alone, without the warm-up.
func (j job) measure(ctx context.Context, look loadgen.TargetFunc, stats func() service.Stats) (results.Run, error) {
	if j.WarmUp {
		if err := j.warmUp(ctx, look); err != nil {
			return results.Run{}, err
		}
	}
	var before service.Stats
	if stats != nil {
		before = stats()
	}
	run, err := j.sendLoad(ctx, look)
	if err != nil {
		return run, err
	}
	if stats != nil {
		if after := stats(); after.ReuseRate >= 0 {
			run.Process.ReuseRate = share(after.Reused-before.Reused, after.Responses-before.Responses)
		}
	}
	return run, nil
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func process(u probe.Usage) results.Process {
	return results.Process{
		Mallocs: u.Mallocs, AllocBytes: u.AllocBytes, PeakGoroutines: u.PeakGoroutines, PeakRSS: u.PeakRSS,
		CPUSeconds: u.CPUSeconds, GCShare: u.GCShare, GCPauseP99: u.GCPauseP99, ReuseRate: -1,
	}
}

// stackKB is the measured stack of a goroutine, in KB of 1,024 bytes.
func stackKB(u probe.Usage) float64 {
	return float64(u.PeakStackBytes) / max(1, float64(u.PeakStacks)) / 1024
}

// parked is the contestant of H11: goroutines that only wait, like those of a naive
// service while the store works.
func parked(ctx context.Context, j job) (results.Run, error) {
	p := probe.Start()
	time.Sleep(50 * time.Millisecond) // its first sample, of other stacks, is before that
	release := make(chan struct{})
	var all sync.WaitGroup
	for range j.Clients {
		all.Go(func() { <-release })
	}
	select {
	case <-time.After(100 * time.Millisecond): // several samples of the probe
	case <-ctx.Done():
	}
	close(release)
	all.Wait()
	used := p.Stop()
	return results.Run{
		Elapsed: used.Seconds, Params: map[string]any{"goroutines": j.Clients},
		Process: process(used), Extra: map[string]float64{"stack_kb": stackKB(used)},
	}, ctx.Err()
}
