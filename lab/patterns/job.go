package patterns

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/load/usage"
)

// Job is the input of a contestant: the settings, with the sizes of its load.
type Job struct {
	Config
	Load, Pattern string
	Seed          uint64
	WarmUp        bool          // send a request of each client before measuring
	Time          time.Duration // that the load lasts, in place of its number of requests
	Compute       time.Duration // that a look-up computes, in place of the store's latency
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

// over loads the published shape over a store, each client with its share of the requests
// back to back, and reads what the process used. Reuse is that of the load alone, without the
// warm-up.
func (j Job) over(ctx context.Context, store specimen.Store) (results.Run, error) {
	shape, err := specimen.New(j.Pattern, store, specimen.Config{Workers: j.Workers, Queue: j.QueueSize, Wait: j.QueueWait})
	if err != nil {
		return results.Run{}, err
	}
	defer shape.Close()
	var foreign atomic.Uint64 // answers with another patient's data
	look := loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		reply, err := shape.Look(ctx, j.ID(n))
		if err != nil {
			return outcome(err)
		}
		defer shape.Release(reply)
		switch j.Load {
		case Reuse:
			got, err1 := json.Marshal(reply.Patient)
			want, err2 := json.Marshal(specimen.Made(j.ID(n)))
			if err = errors.Join(err1, err2); !bytes.Equal(got, want) {
				foreign.Add(1)
			}
		case Brisk: // as a handler does
			err = json.NewEncoder(io.Discard).Encode(reply)
		}
		return loadgen.FromError(err)
	})
	closed := &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Clients)}
	if j.WarmUp {
		if _, err := loadgen.Run(ctx, loadgen.Config{Target: look, Closed: closed}); err != nil {
			return results.Run{}, err
		}
	}
	closed.Requests, closed.Duration = uint64(j.Requests), j.Time
	getsBefore, madeBefore, _ := shape.Replies()
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
	if simulated, ok := store.(*specimen.Simulated); ok {
		run.Extra[connections.Key] = float64(simulated.PeakCalls())
	}
	if gets, made, ok := shape.Replies(); ok && gets > getsBefore {
		all, fresh := float64(gets-getsBefore), float64(made-madeBefore)
		run.Process.ReuseRate = (all - fresh) / all
		run.Extra[reuse.Key] = run.Process.ReuseRate
		run.Extra[reported.Key] = all / (all + fresh) // the published hit rate: every Get is a hit, every reply made a miss
	}
	if j.Load == Reuse {
		run.Extra["foreign"] = float64(foreign.Load())
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

// addStack adds the measured stack of a goroutine, in KB of 1,024 bytes.
func addStack(run *results.Run, u usage.Usage) {
	if u.PeakStacks > 0 {
		run.Extra["stack_kb"] = float64(u.PeakStackBytes) / float64(u.PeakStacks) / 1024
	}
}

// published is the contestant in the published shape: load, pattern and store in one
// process.
func published(ctx context.Context, j Job) (results.Run, error) {
	if j.Load == Parked || j.Load == Looking {
		return j.crowd(ctx)
	}
	return j.over(ctx, j.store())
}

// store is the published store, or one that computes.
func (j Job) store() *specimen.Simulated {
	store := &specimen.Simulated{MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed}
	if j.Compute > 0 {
		store.Work = burn.For(j.Compute)
	}
	return store
}

// crowd is the contestant of H11: as many goroutines as clients, which only wait, or look patients
// up until all have been counted.
func (j Job) crowd(ctx context.Context) (results.Run, error) {
	store := j.store()
	p := usage.Start()
	time.Sleep(50 * time.Millisecond) // its first sample, of other stacks, is before that
	counted, end := context.WithCancel(ctx)
	defer end()
	var all sync.WaitGroup
	for n := range j.Clients {
		all.Go(func() {
			for j.Load == Looking && counted.Err() == nil {
				_, _ = store.Patient(j.ID(uint64(n)))
			}
			<-counted.Done()
		})
	}
	select {
	case <-time.After(100 * time.Millisecond): // several samples of the probe
	case <-ctx.Done():
	}
	end()
	all.Wait()
	used := p.Stop()
	run := results.Run{Elapsed: used.Seconds, Params: map[string]any{"goroutines": j.Clients}, Process: experiment.Process(used), Extra: map[string]float64{}}
	addStack(&run, used)
	return run, ctx.Err()
}

const (
	// requestTimeout bounds one request of the set-up "for real".
	requestTimeout = 30 * time.Second
	// MaxConnections is how many the database may have there: no fewer than a pool has
	// workers, so that the pattern bounds them.
	MaxConnections = 100
)

// serveAndLoad starts the server, loads it over HTTP from this process and stops it.
// If the server is killed, the run has the clients' results until then.
func (j Job) serveAndLoad(ctx context.Context, file string) (results.Run, error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if the run fails
	r, err := j.serve(ctx, Serving{
		File: file, Patients: j.Patients, Pattern: j.Pattern, Workers: j.Workers, QueueSize: j.QueueSize, Connections: MaxConnections,
		MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed,
	}, j.ID, nil)
	if err != nil {
		return results.Run{}, err
	}
	res, err := loadgen.Run(r.Loading, loadgen.Config{
		Target: r.lookup, Timeout: requestTimeout, Interval: service.Step,
		Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Requests)},
	})
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Params, run.Extra = j.Params(), map[string]float64{}
	return run, cmp.Or(r.stop(ctx, &run), ctx.Err())
}
