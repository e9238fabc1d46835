// Package demo shows in half a minute the effect of bounding concurrency: the same
// service three times, unprotected, behind a semaphore of the wrong size and behind a
// limiter without configuration, during an overload and after it.
package demo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// Config configures the demonstration. Default is what users see.
type Config struct {
	Work     service.Work  // what a request costs the database behind the service
	Deadline time.Duration // of a request
	Phases   []Phase
	Interval time.Duration // of a row
	Seed     uint64        // of arrivals and work
}

// Phase is a time of one load.
type Phase struct {
	Name string        `json:"name"`
	Load float64       `json:"load"` // multiple of the capacity
	For  time.Duration `json:"-"`
}

// Default is a calm of 6 s, a storm of 10 s and a calm of 9 s, for a service
// that can do 250 requests a second, scaled to that total duration. Calm is a load at
// which even the unprotected service is stable: its database can collapse for good,
// and from 0.8x on random bursts are enough for that.
func Default(duration time.Duration) Config {
	part := duration / 25
	return Config{
		Work:     service.Work{Slots: 10, Min: 20 * time.Millisecond, Max: 60 * time.Millisecond},
		Deadline: time.Second,
		Phases:   []Phase{{"calm", .5, 6 * part}, {"storm", 3, 10 * part}, {"after the storm", .5, 9 * part}},
		Interval: part,
		Seed:     1,
	}
}

func (c Config) check() error {
	if c.Deadline <= 0 || c.Interval < time.Millisecond || len(c.Phases) == 0 ||
		slices.ContainsFunc(c.Phases, func(p Phase) bool { return p.Load <= 0 || p.For <= 0 }) {
		return errors.New("demo: want a deadline, an interval of at least 1ms, and phases whose load and time are above 0")
	}
	return nil
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
func (t Total) Share() float64 {
	if t.Possible <= 0 {
		return 0
	}
	return t.Good / t.Possible
}

// Run runs the demonstration and calls see with each row as it ends. When ctx
// ends, the result is partial.
func Run(ctx context.Context, cfg Config, see func(Row)) (*Result, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	res := &Result{Capacity: cfg.Work.Capacity(), Deadline: ms(cfg.Deadline), Phases: cfg.Phases}
	load := service.Load{Timeout: cfg.Deadline, Seed: cfg.Seed}
	for _, p := range cfg.Phases {
		load.Stretches = append(load.Stretches, service.Stretch{Rate: p.Load * res.Capacity, For: p.For})
	}
	var lanes []*lane
	for _, l := range Lanes {
		guard, err := overload.NewGuard(l.contestant, cfg.Work.Slots)
		if err != nil {
			return nil, err
		}
		defer guard.Close()
		lanes = append(lanes, &lane{cfg: cfg, guard: guard, database: service.NewDatabase(cfg.Work, cfg.Seed), begin: time.Now(), totals: make([]tally, len(cfg.Phases))})
		res.Lanes = append(res.Lanes, l.Name)
	}
	var running sync.WaitGroup
	for _, l := range lanes { // the same arrivals for each
		running.Go(func() { _, _ = load.Send(ctx, l.do) }) // the load was checked: it cannot fail
	}
	tick := time.NewTicker(cfg.Interval)
	defer tick.Stop()
	for phase := range cfg.Phases {
		for end := cfg.end(phase); ctx.Err() == nil && time.Duration(len(res.Rows)+1)*cfg.Interval <= end; {
			select {
			case <-ctx.Done():
			case <-tick.C:
				res.Rows = append(res.Rows, cfg.row(len(res.Rows)+1, phase, lanes))
				see(res.Rows[len(res.Rows)-1])
			}
		}
	}
	running.Wait()
	over := cfg.end(len(cfg.Phases) - 1)
	if res.Partial = ctx.Err() != nil; res.Partial { // requests of the last second have not ended
		over = time.Duration(len(res.Rows))*cfg.Interval - cfg.Deadline
	}
	for i, p := range cfg.Phases {
		if cfg.end(i) > over {
			break
		}
		per := (p.For - p.unsettled()).Seconds()
		for k, l := range lanes {
			t := &l.totals[i]
			res.Summary = append(res.Summary, Total{
				Phase: p.Name, Lane: Lanes[k].Name, Good: float64(t.good) / per, Possible: min(res.Capacity, float64(t.sent)/per),
				P99: t.p99(), Critical: float64(t.criticalGood) / float64(max(t.critical, 1)),
			})
		}
	}
	res.Verdicts = res.verdicts()
	return res, nil
}

// end is when a phase ends, from the start.
func (c Config) end(phase int) (d time.Duration) {
	for _, p := range c.Phases[:phase+1] {
		d += p.For
	}
	return d
}

// unsettled is how long the phase before has an effect.
func (p Phase) unsettled() time.Duration { return min(time.Second, p.For/3) }

// lane is one service with the results of its requests.
type lane struct {
	cfg      Config
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
	good, critical := 0, 0
	if outcome == loadgen.OK {
		good = 1
	}
	if important {
		critical = 1
	}
	t.sent, t.good, t.critical, t.criticalGood = t.sent+1, t.good+good, t.critical+critical, t.criticalGood+good*critical
	if outcome == loadgen.Rejected {
		t.refused++
		return
	}
	t.latency.Record(int64(took))
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
	p := l.cfg.Phases[phase]
	settled := sent.Sub(l.begin) >= l.cfg.end(phase)-p.For+p.unsettled()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.row.add(outcome, important, took)
	if settled {
		l.totals[phase].add(outcome, important, took)
	}
	return outcome
}

func (c Config) row(n, phase int, lanes []*lane) Row {
	x, per := c.Phases[phase].Load, c.Interval.Seconds()
	row := Row{At: float64(n) * per, Phase: phase, Load: x, Offered: x * c.Work.Capacity()}
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

// Of returns the total of a lane in a phase.
func (r *Result) Of(phase, lane string) Total {
	i := slices.IndexFunc(r.Summary, func(t Total) bool { return t.Phase == phase && t.Lane == lane })
	if i < 0 {
		return Total{Phase: phase, Lane: lane}
	}
	return r.Summary[i]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
