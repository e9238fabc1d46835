// Package demo shows in half a minute the effect of bounding concurrency: the same
// service three times, unprotected, behind a semaphore of the wrong size and behind a
// limiter without configuration, during an overload and after it.
package demo

import (
	"context"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
)

// The services can do 250 requests a second. Calm is a load at which even the unprotected
// one is stable: its database can collapse for good, and from 0.8x on random bursts are
// enough for that.
const (
	deadline = time.Second // of a request
	seed     = 1           // of arrivals and work
	parts    = 25          // of the duration; a row shows one
)

// work is what a request costs the database behind a service.
var work = service.Work{Slots: 10, Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}

// Capacity is what a service can do: requests a second.
var Capacity = work.Capacity()

// Phase is a time of one load.
type Phase struct {
	Name string  `json:"name"`
	Load float64 `json:"load"` // multiple of the capacity

	begin, settled, end time.Duration // settled: the phase before has no effect any more
}

// phases are a calm of 6 s, a storm of 10 s and a calm of 9 s, scaled to that total duration.
func phases(duration time.Duration) []Phase {
	part := duration / parts
	all := []Phase{{Name: "calm", Load: .5, end: 6 * part}, {Name: "storm", Load: 3, end: 16 * part}, {Name: "after the storm", Load: .5, end: 25 * part}}
	for i := range all {
		p := &all[i]
		if i > 0 {
			p.begin = all[i-1].end
		}
		p.settled = p.begin + min(time.Second, (p.end-p.begin)/3)
	}
	return all
}

// Lanes are the services, in the order in which they are shown.
var Lanes = []struct{ Name, contestant string }{
	{"unprotected", overload.None},
	{"semaphore, 4x too large", overload.SemaphoreBig},
	{"spillway, no number", overload.Spillway},
}

// Row is the result of one interval, lane by lane.
type Row struct {
	At      float64 `json:"at"` // seconds from the start to its end
	Phase   int     `json:"phase"`
	Load    float64 `json:"load"`
	Offered float64 `json:"offered_per_second"`
	Lanes   []Cell  `json:"lanes"`
}

// Cell is one lane in a row. Late requests had no answer within their deadline.
type Cell struct {
	Good     float64 `json:"good_per_second"`
	Refused  float64 `json:"refused_per_second"`
	Late     float64 `json:"late_per_second"`
	P99      float64 `json:"p99_ms"` // of requests that were not refused; 0 without any
	Limit    int     `json:"limit,omitempty"`
	InFlight int     `json:"in_flight"`
	Waiting  int     `json:"waiting"`
}

// Result is the whole demonstration.
type Result struct {
	Capacity float64  `json:"capacity_per_second"`
	Deadline float64  `json:"deadline_ms"`
	Phases   []Phase  `json:"phases"`
	Lanes    []string `json:"lanes"`
	Rows     []Row    `json:"rows"`
	Summary  []Total  `json:"summary"` // by phase, then by lane; of whole phases only
	Panics   *Panics  `json:"panics,omitempty"`
	Verdicts []string `json:"verdicts"` // by lane
	Partial  bool     `json:"partial,omitempty"`
}

// Total is one lane over the settled part of a phase: without its first second.
type Total struct {
	Phase    string  `json:"phase"`
	Lane     string  `json:"lane"`
	Good     float64 `json:"good_per_second"`
	Possible float64 `json:"possible_per_second"` // the capacity, or what was offered if that was less
	P99      float64 `json:"p99_ms"`
	Critical float64 `json:"critical_share"` // of the critical requests, answered in time
}

// Share is the lane's part of the possible goodput, 0 to 1 plus noise.
func (t Total) Share() float64 { return t.Good / max(t.Possible, 1e-9) }

// Run runs the demonstration and calls see with each row as it ends. When ctx
// ends, the result is partial.
func Run(ctx context.Context, duration time.Duration, see func(Phase, Row)) (*Result, error) {
	res := &Result{Capacity: Capacity, Deadline: ms(deadline), Phases: phases(duration)}
	load := service.Load{Timeout: deadline, Seed: seed}
	for _, p := range res.Phases {
		load.Stretches = append(load.Stretches, service.Stretch{Rate: p.Load * Capacity, For: p.end - p.begin})
	}
	var lanes []*lane
	for _, l := range Lanes {
		guard, err := overload.NewGuard(l.contestant, work.Slots)
		if err != nil {
			return nil, err
		}
		defer guard.Close()
		lanes = append(lanes, &lane{phases: res.Phases, guard: guard, database: service.NewDatabase(work, seed), begin: time.Now(), totals: make([]tally, len(res.Phases))})
		res.Lanes = append(res.Lanes, l.Name)
	}
	var running sync.WaitGroup
	for _, l := range lanes { // the same arrivals for each
		running.Go(func() { _, _ = load.Send(ctx, l.do) }) // the load is possible: it cannot fail
	}
	tick := time.NewTicker(duration / parts)
	defer tick.Stop()
	shown := time.Duration(0)
	for i, p := range res.Phases {
		for ctx.Err() == nil && shown+duration/parts <= p.end {
			select {
			case <-ctx.Done():
			case <-tick.C:
				shown += duration / parts
				res.Rows = append(res.Rows, row(shown, duration/parts, i, p, lanes))
				see(p, res.Rows[len(res.Rows)-1])
			}
		}
	}
	running.Wait()
	if res.Partial = ctx.Err() != nil; res.Partial { // requests of the last second have not ended
		shown -= deadline
	}
	for i, p := range res.Phases {
		if p.end > shown {
			break
		}
		per := (p.end - p.settled).Seconds()
		for k, l := range lanes {
			t := &l.totals[i]
			res.Summary = append(res.Summary, Total{
				Phase: p.Name, Lane: Lanes[k].Name, Good: float64(t.good) / per, Possible: min(Capacity, float64(t.sent)/per),
				P99: t.p99(), Critical: float64(t.criticalGood) / float64(max(t.critical, 1)),
			})
		}
	}
	res.Verdicts = res.verdicts()
	return res, nil
}

// lane is one service with the results of its requests.
type lane struct {
	phases   []Phase
	guard    *overload.Guard
	database *service.Database
	begin    time.Time

	mu     sync.Mutex
	row    tally   // since the last row
	totals []tally // of each phase's settled part
}

// tally counts results.
type tally struct {
	sent, good, refused, critical, criticalGood int
	latency                                     histogram.Histogram // of what was not refused
}

func (t *tally) add(outcome loadgen.Outcome, important bool, took time.Duration) {
	t.sent++
	if important {
		t.critical++
	}
	if outcome == loadgen.Rejected {
		t.refused++
		return
	}
	t.latency.Record(int64(took))
	if outcome == loadgen.OK {
		t.good++
		if important {
			t.criticalGood++
		}
	}
}

func (t *tally) p99() float64 { return ms(time.Duration(t.latency.Quantile(.99))) }

// do sends one request to the lane's service.
func (l *lane) do(ctx context.Context, n uint64, _ bool) loadgen.Outcome {
	important := n%5 == 0
	if important {
		ctx = spillway.WithPriority(ctx, spillway.Critical)
	}
	phase, sent := service.StretchOf(n), time.Now()
	outcome := loadgen.FromError(l.guard.Do(ctx, l.database.Ask))
	took := time.Since(sent)
	if outcome == loadgen.OK && ctx.Err() != nil {
		outcome = loadgen.Timeout
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.row.add(outcome, important, took)
	if sent.Sub(l.begin) >= l.phases[phase].settled {
		l.totals[phase].add(outcome, important, took)
	}
	return outcome
}

// row is what the lanes did in the interval before at.
func row(at, interval time.Duration, phase int, p Phase, lanes []*lane) Row {
	row, per := Row{At: at.Seconds(), Phase: phase, Load: p.Load, Offered: p.Load * Capacity}, interval.Seconds()
	for _, l := range lanes {
		l.mu.Lock()
		t := &l.row
		row.Lanes = append(row.Lanes, Cell{
			Good: float64(t.good) / per, Refused: float64(t.refused) / per, Late: float64(t.sent-t.good-t.refused) / per,
			P99: t.p99(), Limit: l.guard.Limit(), InFlight: l.guard.Running(), Waiting: l.guard.Waiting(),
		})
		l.row = tally{}
		l.mu.Unlock()
	}
	return row
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
