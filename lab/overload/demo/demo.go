// Package demo shows in half a minute the effect of bounding concurrency: the same
// service three times, unprotected, behind a semaphore of the wrong size and behind a
// limiter without configuration, during an overload and after it.
package demo

import (
	"context"
	"errors"
	"fmt"
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
	if c.Deadline <= 0 || c.Interval < time.Millisecond || len(c.Phases) == 0 {
		return errors.New("demo: want a deadline, an interval of at least 1ms and phases")
	}
	for _, p := range c.Phases {
		if p.Load <= 0 || p.For <= 0 {
			return fmt.Errorf("demo: a phase of %vx for %v: want both above 0", p.Load, p.For)
		}
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
	arrivals := cfg.arrivals()
	var lanes []*lane
	for _, l := range Lanes {
		database, err := service.NewDatabase(cfg.Work, cfg.Seed)
		if err != nil {
			return nil, err
		}
		guard, err := overload.NewGuard(l.contestant, cfg.Work.Slots)
		if err != nil {
			return nil, err
		}
		defer guard.Close()
		lanes = append(lanes, &lane{guard: guard, database: database, totals: make([]total, len(cfg.Phases))})
	}
	res := &Result{Capacity: cfg.Work.Capacity(), Deadline: ms(cfg.Deadline), Phases: cfg.Phases}
	for _, l := range Lanes {
		res.Lanes = append(res.Lanes, l.Name)
	}
	begin := time.Now()
	var running sync.WaitGroup
	for _, l := range lanes {
		l.phaseAt = func(at time.Duration) (int, bool) { return cfg.phaseAt(at) }
		l.begin = begin
		running.Go(func() {
			// The configuration was checked, so this cannot fail.
			_, _ = loadgen.Run(ctx, loadgen.Config{Target: l, Open: arrivals, Timeout: cfg.Deadline})
		})
	}
	tick := time.NewTicker(cfg.Interval)
	defer tick.Stop()
	for n, whole := 1, cfg.length(); ctx.Err() == nil && time.Duration(n)*cfg.Interval <= whole; n++ {
		select {
		case <-ctx.Done():
		case <-tick.C:
			row := cfg.row(time.Duration(n)*cfg.Interval, lanes)
			res.Rows = append(res.Rows, row)
			see(row)
		}
	}
	running.Wait()
	res.Partial = ctx.Err() != nil
	over := cfg.length()
	if res.Partial { // requests of the last second have not ended
		over = time.Duration(len(res.Rows))*cfg.Interval - cfg.Deadline
	}
	res.Summary = cfg.summary(arrivals, lanes, over)
	res.Verdicts = res.verdicts()
	return res, nil
}

func (c Config) length() (d time.Duration) {
	for _, p := range c.Phases {
		d += p.For
	}
	return d
}

// phaseAt returns the phase at a time, and whether it has settled by then.
func (c Config) phaseAt(at time.Duration) (phase int, settled bool) {
	for i, p := range c.Phases {
		if at < p.For || i == len(c.Phases)-1 {
			return i, at >= min(time.Second, p.For/3) && at < p.For
		}
		at -= p.For
	}
	return 0, false
}

// times is a schedule of given arrivals.
type times struct {
	at     []time.Duration
	length time.Duration
}

// At implements loadgen.Schedule.
func (t times) At(n uint64) (time.Duration, bool) {
	if n < uint64(len(t.at)) {
		return t.at[n], true
	}
	return t.length, false
}

// arrivals are the same for every lane.
func (c Config) arrivals() times {
	t := times{length: c.length()}
	start := time.Duration(0)
	for i, p := range c.Phases {
		for at := range loadgen.Times(loadgen.Poisson(p.Load*c.Work.Capacity(), p.For, c.Seed+uint64(i))) {
			t.at = append(t.at, start+at)
		}
		start += p.For
	}
	return t
}

// lane is one service with the results of its requests. It is a loadgen.Target.
type lane struct {
	guard    *overload.Guard
	database *service.Database
	begin    time.Time
	phaseAt  func(time.Duration) (int, bool)

	mu     sync.Mutex
	row    tally
	totals []total
}

// tally counts the results since the last row.
type tally struct {
	good, refused, late int
	latency             histogram.Histogram // of what was not refused
}

// total counts the results in a phase's settled part.
type total struct {
	good, critical, criticalGood int
	latency                      histogram.Histogram
}

// Do sends one request to the lane's service.
func (l *lane) Do(ctx context.Context, n uint64) loadgen.Outcome {
	important := n%5 == 0
	if important {
		ctx = spillway.WithPriority(ctx, spillway.Critical)
	}
	sent := time.Now()
	outcome := loadgen.FromError(l.guard.Do(ctx, l.database.Ask))
	took := time.Since(sent)
	if outcome == loadgen.OK && ctx.Err() != nil {
		outcome = loadgen.Timeout
	}
	phase, settled := l.phaseAt(sent.Sub(l.begin))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch outcome {
	case loadgen.OK:
		l.row.good++
	case loadgen.Rejected:
		l.row.refused++
	default:
		l.row.late++
	}
	if outcome != loadgen.Rejected {
		l.row.latency.Record(int64(took))
	}
	if settled {
		l.totals[phase].add(outcome, important, took)
	}
	return outcome
}

func (t *total) add(outcome loadgen.Outcome, important bool, took time.Duration) {
	good := 0
	if outcome == loadgen.OK {
		good = 1
	}
	t.good += good
	if important {
		t.critical++
		t.criticalGood += good
	}
	if outcome != loadgen.Rejected {
		t.latency.Record(int64(took))
	}
}

func (c Config) row(at time.Duration, lanes []*lane) Row {
	phase, _ := c.phaseAt(at - c.Interval/2)
	row := Row{At: at.Seconds(), Phase: phase, Load: c.Phases[phase].Load, Offered: c.Phases[phase].Load * c.Work.Capacity()}
	per := c.Interval.Seconds()
	for _, l := range lanes {
		l.mu.Lock()
		t := l.row
		l.row = tally{}
		l.mu.Unlock()
		row.Lanes = append(row.Lanes, Cell{
			Good: float64(t.good) / per, Refused: float64(t.refused) / per, Late: float64(t.late) / per,
			P99: ms(time.Duration(t.latency.Quantile(.99))), Limit: l.guard.Limit(), InFlight: l.guard.Running(), Waiting: l.guard.Waiting(),
		})
	}
	return row
}

// summary totals the phases that were over by then.
func (c Config) summary(arrivals times, lanes []*lane, by time.Duration) []Total {
	offered := make([]float64, len(c.Phases))
	for _, at := range arrivals.at {
		if phase, in := c.phaseAt(at); in {
			offered[phase]++
		}
	}
	var out []Total
	for i, p := range c.Phases {
		if by -= p.For; by < 0 {
			break
		}
		per := (p.For - min(time.Second, p.For/3)).Seconds()
		for k, l := range lanes {
			t := &l.totals[i]
			sum := Total{
				Phase: p.Name, Lane: Lanes[k].Name, Good: float64(t.good) / per, Possible: min(c.Work.Capacity(), offered[i]/per),
				P99: ms(time.Duration(t.latency.Quantile(.99))),
			}
			if t.critical > 0 {
				sum.Critical = float64(t.criticalGood) / float64(t.critical)
			}
			out = append(out, sum)
		}
	}
	return out
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
