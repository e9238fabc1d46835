package patterns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// Job is the input of a contestant: the settings, with the sizes of its load.
type Job struct {
	Config
	Load, Pattern string
	Seed          uint64
	Database      string        // path of the SQLite file; empty: the simulated store
	WarmUp        bool          // send a request of each client before measuring
	Time          time.Duration // that the load lasts, in place of its number of requests
	Compute       time.Duration // that a look-up computes, in place of the store's latency
	Slots         int           // of a model of a database in place of the store; 0: the store
}

// Params are the settings that the claims need.
func (j Job) Params() map[string]any {
	return map[string]any{
		"requests": float64(j.Requests), "clients": float64(j.Clients), "workers": float64(j.Workers), "queue_size": float64(j.QueueSize),
		"queue_wait_ms": ms(j.QueueWait), "min_latency_ms": ms(j.MinLatency), "max_latency_ms": ms(j.MaxLatency), "error_rate": j.ErrorRate,
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ID is the patient that request n asks for: neighbours are far apart.
func (j Job) ID(n uint64) string {
	return specimen.ID(1 + int((n*7919+j.Seed%1000)%uint64(j.Patients)))
}

// Subject is what a contestant loads.
type Subject struct {
	// Answer looks a patient up, encodes the answer where answers are compared, and then
	// gives it back.
	Answer func(ctx context.Context, id string) ([]byte, error)
	// Alone makes the answer that a patient must get, for this patient alone.
	Alone func(ctx context.Context, id string) ([]byte, error)
	// Replies says how often a pool of replies was asked for one so far, and how often it
	// had to make one; ok is false where there is no pool.
	Replies func() (gets, made uint64, ok bool)
	// PeakCalls is the most look-ups of the store that were under way at one time; nil if
	// nobody counts them.
	PeakCalls func() int
}

// Play sends the load, each client its share of the requests back to back, and reads what
// the process used. Reuse is that of the load alone, without the warm-up.
func (j Job) Play(ctx context.Context, s Subject) (results.Run, error) {
	var others atomic.Uint64 // answers with another patient's data
	look := loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		got, err := s.Answer(ctx, j.ID(n))
		if j.Load == Reuse && err == nil {
			var want []byte
			if want, err = s.Alone(ctx, j.ID(n)); !bytes.Equal(got, want) {
				others.Add(1)
			}
		}
		return outcome(err)
	})
	closed := &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Clients)}
	if j.WarmUp {
		if _, err := loadgen.Run(ctx, loadgen.Config{Target: look, Closed: closed}); err != nil {
			return results.Run{}, err
		}
	}
	closed.Requests, closed.Duration = uint64(j.Requests), j.Time
	getsBefore, madeBefore, _ := s.Replies()
	p := usage.Start()
	res, err := loadgen.Run(ctx, loadgen.Config{Target: look, Interval: service.Step, Closed: closed})
	used := p.Stop()
	if err != nil {
		return results.Run{}, err
	}
	if res.Partial {
		return results.Run{}, ctx.Err()
	}
	run := experiment.FromLoad(res)
	run.Params, run.Process, run.Extra = j.Params(), experiment.Process(used), map[string]float64{}
	if s.PeakCalls != nil {
		run.Extra[connections.Key] = float64(s.PeakCalls())
	}
	if gets, made, ok := s.Replies(); ok && gets > getsBefore {
		all, fresh := float64(gets-getsBefore), float64(made-madeBefore)
		run.Process.ReuseRate = (all - fresh) / all
		run.Extra["reuse_true"] = run.Process.ReuseRate
		run.Extra["reuse_reported"] = all / (all + fresh) // the published hit rate: every Get is a hit, every reply made a miss
	}
	if j.Load == Reuse {
		run.Extra["foreign"] = float64(others.Load())
	}
	return run, nil
}

// outcome is what a look-up's error stands for.
func outcome(err error) loadgen.Outcome {
	if errors.Is(err, specimen.ErrFull) {
		return loadgen.Rejected
	}
	return loadgen.FromError(err)
}

// AddStack adds the measured stack of a goroutine, in KB of 1,024 bytes.
func AddStack(run *results.Run, u usage.Usage) {
	if u.PeakStacks > 0 {
		run.Extra["stack_kb"] = float64(u.PeakStackBytes) / float64(u.PeakStacks) / 1024
	}
}

// published is the contestant in the published shape: load, pattern and store in one
// process.
func published(ctx context.Context, j Job) (results.Run, error) {
	if j.Load == Parked {
		return parked(ctx, j)
	}
	store := j.store()
	return j.over(ctx, store, store.PeakCalls)
}

// simulated is the published store.
func (c Config) simulated(seed uint64) *specimen.Simulated {
	return &specimen.Simulated{MinLatency: c.MinLatency, MaxLatency: c.MaxLatency, ErrorRate: c.ErrorRate, Seed: seed}
}

// store is the published store, or one that computes.
func (j Job) store() *specimen.Simulated {
	store := j.simulated(j.Seed)
	if j.Compute > 0 {
		store.Work = burn.For(j.Compute)
	}
	return store
}

// over loads the published shape over a store.
func (j Job) over(ctx context.Context, store specimen.Store, peakCalls func() int) (results.Run, error) {
	shape, err := specimen.New(j.Pattern, store, specimen.Config{Workers: j.Workers, Queue: j.QueueSize, Wait: j.QueueWait})
	if err != nil {
		return results.Run{}, err
	}
	defer shape.Close()
	return j.Play(ctx, Subject{
		Answer: func(ctx context.Context, id string) (body []byte, err error) {
			reply, err := shape.Look(ctx, id)
			if err != nil {
				return nil, err
			}
			switch j.Load {
			case Reuse:
				body, err = json.Marshal(reply.Patient)
			case Brisk: // as a handler does
				err = json.NewEncoder(io.Discard).Encode(reply)
			}
			shape.Release(reply)
			return body, err
		},
		Alone:   func(_ context.Context, id string) ([]byte, error) { return json.Marshal(specimen.Made(id)) },
		Replies: shape.Replies, PeakCalls: peakCalls,
	})
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
	run := results.Run{Elapsed: used.Seconds, Params: map[string]any{"goroutines": j.Clients}, Process: experiment.Process(used), Extra: map[string]float64{}}
	AddStack(&run, used)
	return run, ctx.Err()
}

const (
	// RequestTimeout bounds one request of the set-up "for real".
	RequestTimeout = 30 * time.Second
	// MaxConnections is how many the database may have there, and in the scenarios: no
	// fewer than a pool has workers, so that the pattern bounds them.
	MaxConnections = 100
)

// serveAndLoad starts the server, loads it over HTTP from this process and stops it.
// If the server is killed, the run has the clients' results until then.
func (j Job) serveAndLoad(ctx context.Context) (results.Run, error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if the run fails
	srv, err := service.Start(ctx, j.patient(RoleServer, j))
	if err != nil {
		return results.Run{}, err
	}
	var foreign atomic.Int64
	target, err := service.Patients("http://"+srv.Address, nil, j.ID, &foreign)
	if err != nil {
		return results.Run{}, err
	}
	var took service.Latencies
	res, err := loadgen.Run(srv.Loading, loadgen.Config{
		Target: target, Timeout: RequestTimeout, Interval: service.Step, Progress: took.Add,
		Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Requests)},
	})
	target.Close()
	if err != nil {
		return results.Run{}, err
	}
	report := results.Run{Process: results.Process{ReuseRate: -1}}
	exit, err := srv.Stop(ctx, &report)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Params, run.Killed, run.Process, run.Extra = j.Params(), exit.Killed, report.Process, report.Extra
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	addMemory(run.Series, exit.Memory)
	took.AddTo(run.Series)
	if n := foreign.Load(); n > 0 {
		return run, fmt.Errorf("%d answers were not about the patient that was asked for", n)
	}
	return run, ctx.Err()
}

// addMemory adds the samples of the server's memory to the load's time line.
func addMemory(series []results.Point, memory []contestant.Memory) {
	if len(memory) == 0 || len(series) == 0 {
		return
	}
	// The load starts shortly after the process; the last sample is its end.
	offset := memory[len(memory)-1].At.Seconds() - series[len(series)-1].At
	for k := range series {
		for len(memory) > 1 && memory[1].At.Seconds() <= series[k].At+offset {
			memory = memory[1:]
		}
		series[k].RSS = memory[0].RSS
	}
}
