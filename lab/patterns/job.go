package patterns

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// Job is the input of a contestant: the settings, with the sizes of its load.
type Job struct {
	Config
	Load, Pattern string
	Seed          uint64
	Database      string // path of the SQLite file; empty: the simulated store
	WarmUp        bool   // send a request of each client before measuring
}

// Params are the settings that the claims need.
func (j Job) Params() map[string]any {
	return map[string]any{
		"requests": float64(j.Requests), "clients": float64(j.Clients), "workers": float64(j.Workers), "queue_size": float64(j.QueueSize),
		"queue_wait_ms": MS(j.QueueWait), "min_latency_ms": MS(j.MinLatency), "max_latency_ms": MS(j.MaxLatency), "error_rate": j.ErrorRate,
	}
}

// MS is a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

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
	Store   interface {
		PeakCalls() int
		MeanLatency() time.Duration
	}
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
		if errors.Is(err, specimen.ErrFull) {
			return loadgen.Rejected
		}
		return loadgen.FromError(err)
	})
	closed := &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Clients)}
	if j.WarmUp {
		if _, err := loadgen.Run(ctx, loadgen.Config{Target: look, Closed: closed}); err != nil {
			return results.Run{}, err
		}
	}
	closed.Requests = uint64(j.Requests)
	getsBefore, madeBefore, _ := s.Replies()
	p := usage.Start()
	res, err := loadgen.Run(ctx, loadgen.Config{Target: look, Interval: seriesStep, Closed: closed})
	used := p.Stop()
	if err != nil {
		return results.Run{}, err
	}
	if res.Partial {
		return results.Run{}, ctx.Err()
	}
	run := experiment.FromLoad(res)
	run.Params, run.Process, run.Extra = j.Params(), experiment.Process(used), asCounted(&run)
	if gets, made, ok := s.Replies(); ok && gets > getsBefore {
		all, fresh := float64(gets-getsBefore), float64(made-madeBefore)
		run.Process.ReuseRate = (all - fresh) / all
		run.Extra["reuse_true"] = run.Process.ReuseRate
		run.Extra["reuse_reported"] = all / (all + fresh) // the published hit rate: every Get is a hit, every reply made a miss
	}
	if j.Load == Reuse {
		run.Extra["foreign"] = float64(others.Load())
	}
	run.Process.PeakStoreCalls = s.Store.PeakCalls()
	run.Extra["connections"], run.Extra["store_latency_ms"] = float64(s.Store.PeakCalls()), MS(s.Store.MeanLatency())
	return run, nil
}

// seriesStep is the resolution of the time lines in the report.
const seriesStep = 100 * time.Millisecond

// AddStack adds the measured stack of a goroutine, in KB of 1,024 bytes.
func AddStack(run *results.Run, u usage.Usage) {
	if u.PeakStacks > 0 {
		run.Extra["stack_kb"] = float64(u.PeakStackBytes) / float64(u.PeakStacks) / 1024
	}
}
