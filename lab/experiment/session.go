package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
)

// Session is one execution of an experiment. It may be interrupted and resumed.
type Session struct {
	Dir      string // results go here; must not hold runs yet
	Repeats  int
	Again    int // how often a disturbed measurement is made again
	Seed     uint64
	Command  []string // how it was called, for the report
	Progress *Progress

	// Watch begins to watch other processes; what it returns is the share of the
	// processors that they have used since. Nil: as the system reports it.
	Watch func() func() float64
}

// Run executes the experiment, judges it and writes the results folder. If ctx ends,
// the measurements made until then are still judged and written, and Results.Partial
// says so. An error means that no results were written: the settings were invalid
// (errors.Is ErrInput) or the folder could not be used.
func (s Session) Run(ctx context.Context, exp *Experiment, config any) (results.Results, []results.Run, error) {
	plan, err := exp.plan(config)
	if err != nil {
		return results.Results{}, nil, inputError{err}
	}
	settings, err := json.Marshal(config)
	if err != nil {
		return results.Results{}, nil, inputError{err}
	}
	log, err := results.CreateRunLog(s.Dir)
	if err != nil {
		return results.Results{}, nil, inputError{err}
	}
	res := results.Results{
		Schema: results.Schema, Experiment: exp.ID, Started: time.Now().Truncate(time.Second), Machine: ThisMachine(), Revision: Revision(),
		Command: s.Command, Config: settings, Settings: settingsOf(config), Seed: s.Seed, Repeats: s.Repeats, Scaled: exp.scaled(config),
	}
	r := &running{Session: s, exp: exp, plan: plan, log: log, res: res}
	return r.run(ctx)
}

// Resume goes on with the session in dir until it has so many repeats. Its settings and
// seed are those it began with; another revision of the lab, or another version of Go,
// is refused, for its runs could not be compared.
func (s Session) Resume(ctx context.Context, exp *Experiment) (results.Results, []results.Run, error) {
	none := func(err error) (results.Results, []results.Run, error) {
		return results.Results{}, nil, inputError{err}
	}
	res, runs, err := results.Read(s.Dir)
	if err != nil {
		return none(err)
	}
	switch {
	case res.Experiment != exp.ID:
		return none(fmt.Errorf("the session in %s is one of experiment %s: spillway lab %s --resume %s", s.Dir, res.Experiment, res.Experiment, s.Dir))
	case res.Revision != Revision():
		return none(fmt.Errorf("the session in %s was made by revision %s of the lab and this is %s: their runs cannot be compared; start a new session", s.Dir, res.Revision, Revision()))
	case res.Machine.Go != runtime.Version() || res.Machine.CPUs != runtime.NumCPU() || res.Machine.CPU != ThisMachine().CPU:
		return none(fmt.Errorf("the session in %s was made on another machine or version of Go (%s, %d CPUs, %s): start a new session", s.Dir, res.Machine.Go, res.Machine.CPUs, res.Machine.CPU))
	}
	config := exp.config()
	if err := json.Unmarshal(res.Config, config); err != nil {
		return none(fmt.Errorf("the settings of the session in %s: %w", s.Dir, err))
	}
	plan, err := exp.plan(config)
	if err != nil {
		return none(err)
	}
	log, err := results.ContinueRunLog(s.Dir)
	if err != nil {
		return none(err)
	}
	s.Seed = res.Seed
	res.Repeats = max(res.Repeats, s.Repeats)
	s.Repeats = res.Repeats
	r := &running{Session: s, exp: exp, plan: plan, log: log, res: res, runs: runs, demos: res.Demos}
	for _, run := range runs {
		r.order = max(r.order, run.Order+1)
	}
	if r.looked() && r.remains() {
		r.res.Looks++
	}
	return r.run(ctx)
}

// looked reports whether the session was judged with enough repeats for a verdict: only
// then could it have been ended because of what was seen.
func (r *running) looked() bool {
	return slices.ContainsFunc(r.res.Claims, func(c results.Claim) bool {
		return slices.ContainsFunc(c.Answers, func(a results.Answer) bool { return a.Repeats >= judge.MinRepeats })
	})
}

// remains reports whether something is still to be measured.
func (r *running) remains() bool {
	for repeat := range r.Repeats {
		if slices.ContainsFunc(r.plan.batches(), func(b batch) bool { return !r.done(b, repeat) }) {
			return true
		}
	}
	return false
}

// ErrInput is matched by errors that the user can correct by other settings.
var ErrInput = errors.New("bad input")

type inputError struct{ error }

func (inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error      { return e.error }

// running is the state of a session.
type running struct {
	Session
	exp      *Experiment
	plan     Plan
	log      *results.RunLog
	res      results.Results
	runs     []results.Run
	demos    []results.Demo
	failures []string
	order    int
	again    time.Duration // spent on measurements that were made again
}

func (r *running) run(ctx context.Context) (results.Results, []results.Run, error) {
	defer r.log.Close()
	if err := results.WriteSession(r.Dir, r.res); err != nil {
		return results.Results{}, nil, inputError{err}
	}
	r.Progress.start(r.plan.Expect(r.Repeats))
	err := r.prepare(ctx)
	if err == nil {
		err = r.everything(ctx)
	}
	r.Progress.stop()
	if err != nil {
		if len(r.runs) == 0 {
			r.log.Discard()
		}
		return results.Results{}, r.runs, err
	}
	r.res.Ended = time.Now().Truncate(time.Second)
	r.res.Partial, r.res.Demos = r.partial(ctx), r.demos
	r.runs = results.Latest(r.runs)
	r.res.Claims = r.exp.Judge(r.runs, r.res)
	return r.res, r.runs, report.Write(r.Dir, r.exp.Family, r.res, r.runs)
}

// Judge decides every claim from the raw runs of a session, a partial one too.
func (e *Experiment) Judge(runs []results.Run, of results.Results) []results.Claim {
	ev := ledger.NewEvidence(runs, of.Seed)
	ev.Looks = of.Looks
	return e.Family.Judge(ev)
}

// prepare fails for problems that the user can correct, such as a full disk.
func (r *running) prepare(ctx context.Context) error {
	r.Progress.begin("preparing", 0)
	for _, spec := range r.plan.Programs {
		if _, err := contestant.Build(ctx, spec, r.Progress); err != nil && ctx.Err() == nil {
			return inputError{err}
		}
	}
	if r.plan.Prepare == nil {
		return nil
	}
	if err := r.plan.Prepare(ctx); err != nil && ctx.Err() == nil {
		return inputError{err}
	}
	r.Progress.end("")
	return nil
}

func (r *running) everything(ctx context.Context) error {
	for repeat := range r.Repeats {
		if err := r.repeat(ctx, repeat); err != nil {
			return err
		}
	}
	for _, d := range r.plan.Demos {
		if ctx.Err() != nil {
			return nil
		}
		if slices.ContainsFunc(r.demos, func(done results.Demo) bool { return done.ID == d.ID }) {
			continue // of the session that is resumed
		}
		r.Progress.begin("demonstration: "+d.Title, d.Expect)
		demo, err := d.Run(ctx)
		switch {
		case err == nil:
			r.demos = append(r.demos, demo)
			r.Progress.end(demo.Outcome)
		case ctx.Err() == nil:
			r.failures = append(r.failures, fmt.Sprintf("demonstration %s: %v", d.ID, err))
			r.Progress.end("failed: " + err.Error())
		}
	}
	return nil
}

// repeat runs every batch once, in a new random order, so that slow drift over the
// session affects every contestant.
func (r *running) repeat(ctx context.Context, repeat int) error {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(repeat)))
	trial := Trial{Repeat: repeat, Seed: rng.Uint64()}
	todo := r.plan.batches()
	rng.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	for _, b := range todo {
		if ctx.Err() != nil {
			return nil
		}
		if r.done(b, repeat) {
			continue
		}
		r.Progress.begin(fmt.Sprintf("repeat %d of %d · %s", repeat+1, r.Repeats, b.label()), b.expect())
		if err := r.batch(ctx, b, trial); err != nil {
			return err
		}
	}
	return nil
}

// done reports whether a session that is resumed has measured the batch in that repeat.
func (r *running) done(b batch, repeat int) bool {
	for _, g := range b {
		for _, k := range g.Keys {
			if !slices.ContainsFunc(r.runs, func(run results.Run) bool {
				return run.Repeat == repeat && run.Failed == "" && ledger.KeyOf(&run) == k
			}) {
				return false
			}
		}
	}
	return true
}

// batch measures, and measures again if other processes disturbed it.
func (r *running) batch(ctx context.Context, b batch, trial Trial) error {
	for try := 0; ; try++ {
		began := time.Now()
		others := r.watch()()
		done, errs := measure(ctx, b, trial)
		disturbed := others()
		if ctx.Err() != nil && slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
			return nil // interrupted by the user: no measurement, and no failure
		}
		took := time.Since(began)
		if disturbed < tooMuch {
			disturbed = 0
		}
		note, err := r.keep(b, trial, done, errs, disturbed)
		if err != nil {
			return err
		}
		if disturbed == 0 || try >= r.Again || r.again+took > r.plan.Expect(r.Repeats)/2 {
			r.Progress.end(note)
			return nil
		}
		r.again += took
		r.Progress.note(fmt.Sprintf("other processes used %.0f %% of the machine: measured again", 100*disturbed))
	}
}

func (r *running) watch() func() func() float64 {
	if r.Watch != nil {
		return r.Watch
	}
	return func() func() float64 { return watchNeighbours().share }
}

// measure runs the groups of a batch at the same time.
func measure(ctx context.Context, b batch, trial Trial) ([][]results.Run, []error) {
	done, errs := make([][]results.Run, len(b)), make([]error, len(b))
	var all sync.WaitGroup
	for i, g := range b {
		all.Go(func() {
			started := time.Now()
			runs, err := g.Run(ctx, trial)
			if err == nil && len(runs) != len(g.Keys) {
				err = fmt.Errorf("%d runs of %d cells", len(runs), len(g.Keys))
			}
			if err != nil {
				runs = append(runs, make([]results.Run, len(g.Keys))...)[:len(g.Keys)]
			}
			for j := range runs {
				runs[j].Started = started
				if runs[j].Elapsed == 0 {
					runs[j].Elapsed = time.Since(started).Seconds()
				}
			}
			done[i], errs[i] = runs, err
		})
	}
	all.Wait()
	return done, errs
}

// keep stores the runs of a batch, and returns a note on them for the progress.
func (r *running) keep(b batch, trial Trial, done [][]results.Run, errs []error, disturbed float64) (note string, err error) {
	for i, g := range b {
		if errs[i] != nil {
			r.failures = append(r.failures, g.label()+": "+results.Gist(errs[i].Error()))
		}
		for j, k := range g.Keys {
			run := done[i][j]
			run.Experiment = r.exp.ID
			run.Setup, run.Load, run.Pattern, run.Twin = k.Setup, k.Load, k.Pattern, k.Twin
			run.Repeat, run.Order, run.Disturbed = trial.Repeat, r.order, disturbed
			r.order++
			if errs[i] != nil {
				run.Failed = errs[i].Error()
			}
			if err := r.log.Append(run); err != nil {
				return "", fmt.Errorf("a run could not be kept: %w", err)
			}
			r.runs = append(r.runs, run)
			note = inShort(run)
		}
	}
	if len(b) > 1 || len(b[0].Keys) > 1 {
		note = ""
	}
	return note, nil
}

// partial says why runs are missing, if any are.
func (r *running) partial(ctx context.Context) string {
	planned := r.Repeats * len(r.plan.Keys())
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("interrupted after %d of %d runs and %d of %d demonstrations", len(r.runs), planned, len(r.demos), len(r.plan.Demos))
	case len(r.failures) > 0:
		return fmt.Sprintf("%d of %d measurements and demonstrations failed; the first: %s",
			len(r.failures), r.Repeats*len(r.plan.groups())+len(r.plan.Demos), r.failures[0])
	}
	return ""
}

// inShort is a run in a few words.
func inShort(run results.Run) string {
	switch {
	case run.Failed != "":
		return "failed: " + results.Gist(run.Failed)
	case run.Killed != "":
		return run.Killed
	case run.Offered == 0:
		return ""
	case run.Of("ok").Count > 0 && run.Of("ok").Latency.Count() == 0: // units of work that were not timed individually
		return fmt.Sprintf("%.0f a second", run.Rate("ok"))
	}
	return fmt.Sprintf("%.0f ok/s, %.0f refused/s, p99 %v", run.Rate("ok"), run.Rate("rejected"),
		time.Duration(run.Of("ok").Latency.Quantile(0.99)).Round(time.Millisecond))
}
