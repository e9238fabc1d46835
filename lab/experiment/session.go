package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
)

// Session is one execution of an experiment.
type Session struct {
	Dir      string // results go here; must not hold runs yet
	Repeats  int
	Seed     uint64
	Command  []string // how it was called, for the report
	Progress *Progress
}

// Run executes the experiment, judges it and writes the results folder. If ctx ends,
// the measurements made until then are still judged and written, and Results.Partial
// says so. An error means that no results were written: the settings were invalid
// (errors.Is ErrInput) or the folder could not be used.
func (s Session) Run(ctx context.Context, exp Experiment) (results.Results, []results.Run, error) {
	plan, err := exp.Plan()
	if err != nil {
		return results.Results{}, nil, inputError{err}
	}
	log, err := results.CreateRunLog(s.Dir)
	if err != nil {
		return results.Results{}, nil, inputError{err}
	}
	defer log.Close()
	run := &running{Session: s, id: exp.ID(), plan: plan, log: log}
	res := results.Results{
		Schema: results.Schema, Experiment: exp.ID(), Started: time.Now().Truncate(time.Second), Machine: ThisMachine(),
		Command: s.Command, Seed: s.Seed, Scaled: plan.Scaled,
	}
	s.Progress.start(run.expected())
	if err = run.prepare(ctx); err == nil {
		err = run.everything(ctx)
	}
	s.Progress.stop()
	if err != nil {
		if len(run.runs) == 0 {
			log.Discard()
		}
		return results.Results{}, run.runs, err
	}
	res.Ended = time.Now().Truncate(time.Second)
	res.Partial = run.partial(ctx)
	res.Demos = run.demos
	res.Claims = exp.Judge(run.runs, s.Seed)
	return res, run.runs, report.Write(s.Dir, res, run.runs)
}

// ErrInput is matched by errors that the user can correct by other settings.
var ErrInput = errors.New("bad input")

type inputError struct{ error }

func (inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error      { return e.error }

// running is the state of a session.
type running struct {
	Session
	id       string // of the experiment
	plan     Plan
	log      *results.RunLog
	runs     []results.Run
	demos    []results.Demo
	failures []string
	order    int
}

func (r *running) expected() time.Duration {
	var once, demos time.Duration
	for _, b := range batches(r.plan.Cells) {
		once += expect(b)
	}
	for _, d := range r.plan.Demos {
		demos += d.Expect
	}
	return time.Duration(r.Repeats)*once + demos
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

// repeat runs every cell once, in a new random order, so that slow drift over the
// session affects every contestant.
func (r *running) repeat(ctx context.Context, repeat int) error {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(repeat)))
	trial := Trial{Repeat: repeat, Seed: rng.Uint64()}
	todo := batches(r.plan.Cells)
	rng.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	for _, batch := range todo {
		if ctx.Err() != nil {
			return nil
		}
		r.Progress.begin(fmt.Sprintf("repeat %d of %d · %s", repeat+1, r.Repeats, label(batch)), expect(batch))
		if err := r.batch(ctx, batch, trial); err != nil {
			return err
		}
	}
	return nil
}

func (r *running) batch(ctx context.Context, batch []Cell, trial Trial) error {
	done := make([]results.Run, len(batch))
	errs := make([]error, len(batch))
	var all sync.WaitGroup
	for i, cell := range batch {
		all.Go(func() {
			started := time.Now()
			done[i], errs[i] = cell.Run(ctx, trial)
			done[i].Started = started
			if done[i].Elapsed == 0 {
				done[i].Elapsed = time.Since(started).Seconds()
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil && slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil // interrupted by the user: no measurement, and no failure
	}
	note := ""
	for i, cell := range batch {
		run := done[i]
		run.Experiment = r.id
		run.Setup, run.Load, run.Pattern, run.Twin = cell.Setup, cell.Load, cell.Pattern, cell.Twin
		run.Repeat, run.Order = trial.Repeat, r.order
		r.order++
		if err := errs[i]; err != nil {
			run.Failed = err.Error()
			r.failures = append(r.failures, cell.Label()+": "+results.Gist(run.Failed))
		}
		if err := r.log.Append(run); err != nil {
			return fmt.Errorf("a run could not be kept: %w", err)
		}
		r.runs = append(r.runs, run)
		note = inShort(run)
	}
	if len(batch) > 1 {
		note = ""
	}
	r.Progress.end(note)
	return nil
}

// partial says why runs are missing, if any are.
func (r *running) partial(ctx context.Context) string {
	planned := r.Repeats * len(r.plan.Cells)
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("interrupted after %d of %d runs and %d of %d demonstrations", len(r.runs), planned, len(r.demos), len(r.plan.Demos))
	case len(r.failures) > 0:
		return fmt.Sprintf("%d of %d runs and demonstrations gave no measurement; the first: %s",
			len(r.failures), planned+len(r.plan.Demos), r.failures[0])
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
