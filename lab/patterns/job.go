package patterns

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// Job is the input of a contestant.
type Job struct {
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

func (c Config) job(l load, pattern string, trial experiment.Trial) Job {
	return Job{
		Pattern: pattern, Requests: l.requests, Clients: l.clients, Workers: l.workers,
		QueueSize: c.QueueSize, QueueWait: c.QueueWait, MinLatency: c.MinLatency, MaxLatency: c.MaxLatency,
		ErrorRate: c.ErrorRate, Patients: c.Patients, Seed: trial.Seed,
	}
}

// Params are the settings that the judge and the report need.
func (j Job) Params() map[string]any {
	return map[string]any{
		"requests": j.Requests, "clients": j.Clients, "workers": j.Workers, "queue_size": j.QueueSize,
		"queue_wait_ms": ms(j.QueueWait), "min_latency_ms": ms(j.MinLatency), "max_latency_ms": ms(j.MaxLatency),
		"error_rate": j.ErrorRate,
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ID is the patient that request n asks for: neighbours are far apart.
func (j Job) ID(n uint64) string {
	return fmt.Sprintf("P%06d", 1+(n*7919+j.Seed%1000)%uint64(j.Patients))
}

// Served is what a server contestant reports when it is stopped.
type Served struct {
	Usage           usage.Usage
	ReuseRate       float64
	PeakStoreCalls  int
	PeakConnections int           // to the database
	StoreLatency    time.Duration // mean of the injected latency
}

// SeriesStep is the resolution of the time lines in the report.
const SeriesStep = 100 * time.Millisecond

// stackKB is the measured stack of a goroutine, in KB of 1,024 bytes.
func stackKB(u usage.Usage) float64 {
	return float64(u.PeakStackBytes) / max(1, float64(u.PeakStacks)) / 1024
}

// parked is the contestant of H11: goroutines that only wait, like those of a naive
// service while the store works.
func parked(ctx context.Context, j Job) (results.Run, error) {
	p := usage.Start()
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
		Process: experiment.Process(used), Extra: map[string]float64{"stack_kb": stackKB(used)},
	}, ctx.Err()
}
