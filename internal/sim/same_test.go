package sim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// For one trace of callers, the simulator and the live limiter must make the same decisions at the
// same nanosecond.

var traced = func() map[string]sim.Scenario {
	three := func(load float64, b sim.Backend) sim.Scenario {
		s := sim.Scenario{Seed: 7, Duration: 12 * sec, Backend: b, Record: sim.Record{}.WithEvents()}
		work := sim.Uniform(50*ms, 100*ms)
		s.Classes = []sim.Class{
			{Share: 0.2, Priority: spillway.Critical, Deadline: sec, Service: work},
			{Share: 0.3, Deadline: 400 * ms, Service: work, Cost: 2},
			{Share: 0.5, Priority: spillway.Low, Deadline: sec, Service: work, ErrorRate: 0.1, FastErrors: true},
		}
		s.Arrivals = sim.Poisson(load * s.Capacity())
		return s
	}
	patient := three(1.2, sim.NWay(20))
	for i := range patient.Classes {
		patient.Classes[i].Deadline = 0
	}
	halved := three(0.9, sim.NWay(20))
	halved.Changes = []sim.Change{{At: 4 * sec, Speed: 0.5}, {At: 8 * sec, Speed: 1}}
	retrying := three(1.1, sim.Degrading(20, 0.5))
	retrying.Retry = sim.Retry{Attempts: 3, Backoff: 100 * ms}
	return map[string]sim.Scenario{
		"below capacity": three(0.5, sim.NWay(20)),
		"twice too much": three(2, sim.NWay(20)), "degrading": three(1.5, sim.Degrading(20, 0.5)), "database": three(1.5, sim.Database(30, 10)),
		"callers without deadlines": patient, "backend halves": halved, "callers try again": retrying,
	}
}()

// decision is the result of one attempt.
type decision struct {
	kind   sim.EventKind // Admitted, Refused or Left
	at     time.Duration
	reason spillway.Reason
}

// decisions maps attempts to the simulated limiter's decisions.
func decisions(events []sim.Event) map[uint64]decision {
	all := map[uint64]decision{}
	for _, e := range events {
		switch e.Kind {
		case sim.Admitted, sim.Refused, sim.Left:
			all[e.Attempt] = decision{e.Kind, e.At, e.Reason}
		}
	}
	return all
}

func compare(t *testing.T, got, want map[uint64]decision) {
	t.Helper()
	if len(want) < 1000 {
		t.Fatalf("only %d decisions to compare", len(want))
	}
	wrong := 0
	for id := range uint64(len(want) + 1) {
		if got[id] != want[id] {
			if wrong++; wrong > 5 {
				t.Fatal("and so on")
			}
			t.Errorf("attempt %d of %d: the limiter said %+v, the simulator %+v", id, len(want), got[id], want[id])
		}
	}
}

func TestTheLimiterDecidesAsInTheSimulator(t *testing.T) {
	for name, s := range traced {
		t.Run(name, func(t *testing.T) {
			r := run(t, s)
			var arrivals []sim.Event
			ends := map[uint64]sim.Event{}
			for _, e := range sim.Recorded(r) {
				switch e.Kind {
				case sim.Arrived:
					arrivals = append(arrivals, e)
				case sim.Ended:
					ends[e.Attempt] = e
				}
			}
			got := map[uint64]decision{}
			synctest.Test(t, func(t *testing.T) {
				lim, err := limiter.New(limiter.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer lim.Close()
				start := time.Now()
				var mu sync.Mutex
				var wg sync.WaitGroup
				for _, e := range arrivals {
					time.Sleep(e.At - time.Since(start))
					wg.Go(func() {
						h := call(lim, start, s.Classes[e.Class], e, ends[e.Attempt])
						mu.Lock()
						defer mu.Unlock()
						got[e.Attempt] = h
					})
					synctest.Wait()
				}
				wg.Wait()
			})
			compare(t, got, decisions(sim.Recorded(r)))
		})
	}
}

// call is one attempt at the live limiter: its work ends at the same time and with
// the same outcome as in the simulator.
func call(lim *limiter.Limiter, start time.Time, c sim.Class, e, end sim.Event) decision {
	ctx := context.Background()
	if e.Deadline >= 0 {
		limited, cancel := context.WithDeadline(ctx, start.Add(e.Deadline))
		defer cancel()
		ctx = limited
	}
	permit, err := lim.AcquireWith(ctx, limiter.Request{Priority: c.Priority, Cost: c.Cost})
	at := time.Since(start)
	rejection, rejected := errors.AsType[*spillway.Rejection](err)
	switch {
	case rejected:
		return decision{sim.Refused, at, rejection.Reason}
	case err != nil:
		return decision{kind: sim.Left, at: at}
	}
	time.Sleep(end.At - at)
	switch end.Outcome {
	case limit.Success:
		permit.Done(nil)
	case limit.Deadline:
		permit.Done(context.DeadlineExceeded)
	default:
		permit.Done(fmt.Errorf("the work failed"))
	}
	return decision{kind: sim.Admitted, at: at}
}
