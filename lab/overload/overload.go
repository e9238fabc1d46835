// Package overload is the experiment that compares ways of bounding concurrency when
// a service is offered more than it can do: the patient API over HTTP and SQLite, in
// front of a database with a knee, from half its capacity to ten times it.
package overload

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// Setup is the one set-up, in the words of the report.
const Setup = "patient API over HTTP and SQLite"

// Experiment is experiment overload.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.Overload.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.Overload.Title }

// program plays every role, because it may import what they need.
const program = "patient"

// The roles of its contestants.
const (
	RoleServer   = "overload-server"
	RoleDatabase = "overload-database" // of a number of patients: the path of its file
)

// Config is what a user may set.
type Config struct {
	Contestants []string      // nil: all
	Loads       []float64     // multiples of the measured capacity; nil: 0.5 to 10
	WarmUp      time.Duration // before each measurement, at the same load
	Measure     time.Duration // of each measurement
	Deadline    time.Duration // of each request
	Work        Work          // what a lookup costs the database
	Patients    int           // in SQLite
	MemoryCap   uint64        // bytes for each contestant; 0: none
}

// Defaults is the experiment at full size.
func Defaults() Config {
	return Config{
		Contestants: Names(), Loads: []float64{0.5, 0.9, 1.5, 2, 5, 10},
		WarmUp: 3 * time.Second, Measure: 5 * time.Second, Deadline: time.Second,
		Work: Work{Slots: 10, Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}, Patients: 10_000, MemoryCap: 2 << 30,
	}
}

// Quick is a short run: three loads, two seconds each.
func Quick() Config {
	c := Defaults()
	c.Loads = []float64{0.9, 2, 10}
	c.WarmUp, c.Measure = 2*time.Second, 2*time.Second
	return c
}

func (c Config) check() error {
	for _, name := range c.Contestants {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("unknown contestant %q: want one of %s, or leave it out for all", name, strings.Join(Names(), ", "))
		}
	}
	for _, x := range c.Loads {
		if !(x > 0 && x <= 20) {
			return fmt.Errorf("load is %v: want a multiple of the capacity, above 0 and at most 20, such as 1.5", x)
		}
	}
	switch {
	case len(c.Contestants) == 0 || len(c.Loads) == 0:
		return fmt.Errorf("no contestant or no load: leave the flags out for all of them")
	case c.WarmUp < 0 || c.Measure <= 0 || c.Deadline < 10*time.Millisecond:
		return fmt.Errorf("warm-up %v, measure %v, deadline %v: want at least 0s, more than 0s and at least 10ms", c.WarmUp, c.Measure, c.Deadline)
	case c.Patients < 1:
		return fmt.Errorf("patients is %d: want at least 1", c.Patients)
	}
	return c.Work.check()
}

// scaled says how this differs from the experiment at full size.
func (c Config) scaled() string {
	d := Defaults()
	var parts []string
	own := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	own(c.WarmUp != d.WarmUp || c.Measure != d.Measure, "%v of warm-up and %v of measurement instead of %v and %v", c.WarmUp, c.Measure, d.WarmUp, d.Measure)
	own(!slices.Equal(c.Loads, d.Loads), "loads %v instead of %v", c.Loads, d.Loads)
	own(c.Deadline != d.Deadline, "a deadline of %v instead of %v", c.Deadline, d.Deadline)
	own(c.Work != d.Work, "a database of %d slots and %v to %v instead of %d and %v to %v",
		c.Work.Slots, c.Work.Min, c.Work.Max, d.Work.Slots, d.Work.Min, d.Work.Max)
	own(len(c.Contestants) < len(d.Contestants), "%s only", strings.Join(c.Contestants, ", "))
	return strings.Join(parts, "; ")
}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	if err := e.Config.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := &planner{Config: e.Config}
	plan := experiment.Plan{
		Scaled: e.Config.scaled(), Programs: []contestant.Spec{{Program: program, Role: RoleServer}}, Prepare: p.prepare,
	}
	for _, x := range p.Loads {
		for i, name := range p.Contestants {
			plan.Cells = append(plan.Cells, experiment.Cell{
				Setup: Setup, Load: LoadName(x), Pattern: name, Beside: p.beside(x, i),
				Expect: p.WarmUp + p.Measure + p.Deadline + patience,
				Run:    func(ctx context.Context, t experiment.Trial) (results.Run, error) { return p.try(ctx, name, x, t) },
			})
		}
	}
	return plan, nil
}

// LoadName is a multiple of the capacity, such as "1.5x".
func LoadName(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) + "x" }

// planner makes the cells. Prepare sets the rest.
type planner struct {
	Config
	database string
	capacity float64 // good answers a second
}

// beside groups contestants that run at the same time, each in its own process.
// At low loads all of them together use a fraction of the processors, for
// nearly all of a lookup is waiting; above twice the capacity each is alone.
func (p *planner) beside(x float64, i int) string {
	switch {
	case x <= 1:
		return LoadName(x)
	case x <= 2:
		return fmt.Sprint(LoadName(x), " ", i%2)
	}
	return ""
}

func (p *planner) job(name string, seed uint64) Job {
	return Job{Contestant: name, Work: p.Work, Seed: seed, Patients: p.Patients, Database: p.database, Step: seriesStep}
}

// seriesStep is the resolution of the time lines.
const seriesStep = 100 * time.Millisecond

// prepare makes the SQLite file, or finds that of an earlier session, and measures
// the capacity of the service.
func (p *planner) prepare(ctx context.Context) error {
	if _, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: RoleDatabase, Input: p.Patients}, &p.database); err != nil {
		return err
	}
	return p.measureCapacity(ctx)
}

// measureCapacity finds the most good answers a second in a closed loop, over several
// numbers of clients near the database's slots.
func (p *planner) measureCapacity(ctx context.Context) error {
	var url string
	srv, err := contestant.Start(ctx, contestant.Spec{Program: program, Role: RoleServer, Input: p.job(None, 1), MemoryCap: p.MemoryCap}, &url)
	if err != nil {
		return err
	}
	c, err := newClients(url, p.Patients, p.Deadline)
	if err != nil {
		return err
	}
	// Twice, and short: a disturbance makes a figure smaller, never larger.
	for _, share := range []float64{1, 1.2, 1.4, 1, 1.2, 1.4} {
		n := int(float64(p.Work.Slots)*share + .5)
		res, err := loadgen.Run(ctx, loadgen.Config{
			Target: c, Timeout: p.Deadline + patience, Closed: &loadgen.Closed{Clients: n, Duration: max(p.Measure/4, 50*time.Millisecond)},
		})
		if err != nil {
			return err
		}
		p.capacity = max(p.capacity, res.Goodput())
	}
	c.close()
	if _, err := srv.Stop(ctx, nil); err != nil {
		return err
	}
	if p.capacity <= 0 {
		return fmt.Errorf("the service answered nothing while its capacity was measured: is the deadline of %v long enough?", p.Deadline)
	}
	return nil
}

// A run is repeated, at most twice, if the generator sent so late that the run
// measures a busy machine rather than the contestant.
const (
	tries   = 3
	mostLag = .05 // p99 of the send lag, as a share of the deadline
)

// try measures one contestant under one load.
func (p *planner) try(ctx context.Context, name string, x float64, t experiment.Trial) (results.Run, error) {
	for n := 1; ; n++ {
		run, err := p.run(ctx, name, x, t)
		if err != nil || run.Killed != "" {
			return run, err
		}
		run.Params["tries"] = n
		if n == tries || float64(run.Lag.Quantile(.99)) <= mostLag*float64(p.Deadline) {
			return run, nil
		}
	}
}

// run measures once.
func (p *planner) run(ctx context.Context, name string, x float64, t experiment.Trial) (results.Run, error) {
	var url string
	srv, err := contestant.Start(ctx, contestant.Spec{Program: program, Role: RoleServer, Input: p.job(name, t.Seed), MemoryCap: p.MemoryCap}, &url)
	if err != nil {
		return results.Run{}, err
	}
	c, err := newClients(url, p.Patients, p.Deadline)
	if err != nil {
		return results.Run{}, err
	}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-srv.Done(): // killed, which is a result
			stop()
		case <-loading.Done():
		}
	}()
	began, res, err := c.warmThenMeasure(loading, x*p.capacity, p.WarmUp, p.Measure, t.Seed%1e6, seriesStep)
	if err != nil {
		return results.Run{}, err
	}
	c.close()
	var report Served
	exit, err := srv.Stop(ctx, &report)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Elapsed = min(p.Measure, res.Elapsed).Seconds() // requests intended in this time, whenever they were answered
	run.Killed = exit.Killed
	run.Params = map[string]any{
		"load": x, "capacity": p.capacity, "slots": p.Work.Slots, "min_ms": ms(p.Work.Min), "max_ms": ms(p.Work.Max), "deadline_ms": ms(p.Deadline),
		"state": report.State, "generator": res.Why,
	}
	run.Process = experiment.Process(report.Usage)
	run.Process.PeakRSS, run.Process.PeakStoreCalls = max(run.Process.PeakRSS, exit.PeakRSS), report.Peak
	run.Extra = map[string]float64{
		"critical_offered": float64(c.criticalSent.Load()), "critical_ok": float64(c.criticalOK.Load()),
	}
	addSamples(&run, began, report.Samples)
	if n := c.foreign.Load(); n > 0 {
		return run, fmt.Errorf("%d answers were about another patient than the one asked for", n)
	}
	return run, ctx.Err()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// addSamples adds the server's samples of its contestant to the load's time line.
func addSamples(run *results.Run, began time.Time, samples []Sample) {
	i := 0
	for k := range run.Series {
		for i < len(samples) && samples[i].At.Sub(began).Seconds() < run.Series[k].At {
			i++
		}
		if i == len(samples) {
			return
		}
		s := samples[i]
		run.Series[k].Limit, run.Series[k].InFlight, run.Series[k].Queued = s.Limit, s.Running, s.Waiting
	}
}
