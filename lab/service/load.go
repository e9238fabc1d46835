package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// Load is an open loop with Poisson arrivals: clients that do not wait for each other.
type Load struct {
	Stretches []Stretch     // one after the other, without a gap
	Measured  int           // which of them counts
	Timeout   time.Duration // of a request; 0: none
	Seed      uint64        // of the arrivals
}

// Stretch is a part of a load.
type Stretch struct {
	Rate float64 // requests a second
	For  time.Duration
}

// Window is when the stretch that counts begins and ends, if the load begins now.
func (l Load) Window() (from, to time.Time) {
	from = time.Now()
	for _, s := range l.Stretches[:l.Measured] {
		from = from.Add(s.For)
	}
	return from, from.Add(l.Stretches[l.Measured].For)
}

// Send sends the load by do, which is told whether request n counts. It returns the
// result of the stretch that counts: of the requests intended in it, whenever they were
// answered.
func (l Load) Send(ctx context.Context, do func(ctx context.Context, n uint64, counts bool) loadgen.Outcome) (*loadgen.Result, error) {
	done, errs := make([]*loadgen.Result, len(l.Stretches)), make([]error, len(l.Stretches))
	var all sync.WaitGroup
	for i, s := range l.Stretches {
		target := loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
			return do(ctx, uint64(i)<<32+n, i == l.Measured)
		})
		all.Go(func() {
			done[i], errs[i] = loadgen.Run(ctx, loadgen.Config{
				Target: target, Open: loadgen.Poisson(s.Rate, s.For, l.Seed%1e6+uint64(i)), Timeout: l.Timeout, Interval: Step,
			})
		})
		select {
		case <-time.After(s.For): // its last answers come later
		case <-ctx.Done():
		}
	}
	all.Wait()
	return done[l.Measured], errors.Join(errs...)
}

// Saturate measures the capacity: the most good answers a second in closed loops of
// several numbers of clients near the slots, which together take d.
func Saturate(ctx context.Context, target loadgen.Target, slots int, d, timeout time.Duration) (best *loadgen.Result, err error) {
	shares := []float64{1, 1.2, 1.4}
	for _, share := range shares {
		res, err := loadgen.Run(ctx, loadgen.Config{Target: target, Timeout: timeout, Interval: Step,
			Closed: &loadgen.Closed{Clients: int(float64(slots)*share + .5), Duration: d / time.Duration(len(shares))}})
		if err != nil {
			return nil, err
		}
		if best == nil || res.Goodput() > best.Goodput() {
			best = res
		}
	}
	return best, nil
}

// InTime measures again, once, if the p99 of the send lag was above that: what is sent
// late comes all at once, and the run measures a busy machine. The run that was sent less
// late counts.
func InTime(lag time.Duration, measure func() (results.Run, error)) (results.Run, error) {
	late := func(r results.Run) time.Duration { return time.Duration(r.Lag.Quantile(.99)) }
	first, err := measure()
	if err != nil || first.Killed != "" || late(first) <= lag {
		return first, err
	}
	again, err := measure()
	if err == nil && again.Killed == "" && late(again) > late(first) {
		again = first
	}
	return again, err
}
