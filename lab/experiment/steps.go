package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// step is something that a session has to do.
type step struct {
	batch  string // what is measured, or shown
	repeat int    // demonstrations come last
	label  string
	uses   float64              // the share of the processors, 1: it runs alone
	expect func() time.Duration // may change when something else was measured
	run    func(ctx context.Context) (note string, err error)
}

// steps are everything that is left to do.
func (r *sessionState) steps() []step {
	every := func(batch, int) bool { return true }
	return append(r.measurements(r.Repeats, every), r.demonstrations()...)
}

// measurements are the batches that are wanted and left to measure: in every repeat in a
// new random order, so that slow drift over the session affects every contestant.
func (r *sessionState) measurements(repeats int, wanted func(b batch, repeat int) bool) (steps []step) {
	for repeat := range repeats {
		rng := rand.New(rand.NewPCG(r.Seed, uint64(repeat)))
		trial := Trial{Repeat: repeat, Seed: rng.Uint64()}
		batches := r.plan.batches()
		for _, i := range rng.Perm(len(batches)) {
			b := batches[i]
			if !wanted(b, repeat) || r.measured(b, repeat) {
				continue
			}
			label := fmt.Sprintf("%srepeat %d of %d · %s", r.name, repeat+1, repeats, b.label())
			steps = append(steps, step{
				batch: fmt.Sprintf("%s%d", r.name, i), repeat: repeat, label: label, uses: b.uses(),
				expect: func() time.Duration { return r.expected(b) },
				run:    func(ctx context.Context) (string, error) { return r.measure(ctx, label, b, trial) },
			})
		}
	}
	return steps
}

// measured reports whether a session that is resumed has measured the batch in that repeat.
func (r *sessionState) measured(b batch, repeat int) bool {
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

// demonstrations are those that are left to show.
func (r *sessionState) demonstrations() (steps []step) {
	for _, d := range r.plan.Demos {
		if slices.ContainsFunc(r.res.Demos, func(shown results.Demo) bool { return shown.ID == d.ID }) {
			continue
		}
		run := func(ctx context.Context) (string, error) {
			demo, err := d.Run(ctx)
			r.mu.Lock()
			defer r.mu.Unlock()
			switch {
			case err == nil:
				r.res.Demos = append(r.res.Demos, demo)
			case ctx.Err() == nil:
				r.failures = append(r.failures, fmt.Sprintf("demonstration %s: %v", d.ID, err))
				return "failed: " + err.Error(), nil
			}
			return demo.Outcome, nil
		}
		steps = append(steps, step{batch: r.name + d.ID, repeat: r.Repeats, label: r.name + "demonstration: " + d.Title, uses: 1, expect: func() time.Duration { return d.Expect }, run: run})
	}
	return steps
}

// expected is how long a batch should take.
func (r *sessionState) expected(b batch) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return b.expect(r.took, r.pace.slower())
}

// pace is how fast the machine is, by what needed all processors.
type pace struct {
	mu            sync.Mutex
	planned, took time.Duration
}

// add takes a batch that took so long.
func (p *pace) add(b batch, took time.Duration) {
	if p == nil || b.uses() < 1 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned, p.took = p.planned+b.expect(nil, 1), p.took+took
}

// slower is how many times as long as planned things take; 1 until a few seconds were measured.
func (p *pace) slower() float64 {
	if p == nil {
		return 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.planned < 5*time.Second {
		return 1
	}
	return max(1, p.took.Seconds()/p.planned.Seconds())
}

// mostVain is the number of measurements in a row, made again and disturbed again, after which none is
// made again: the machine is not going to be quiet.
const mostVain = 3

// measure measures a batch, and does so again if other processes disturbed it. Every run is kept.
func (r *sessionState) measure(ctx context.Context, label string, b batch, trial Trial) (note string, err error) {
	for try := 0; ; try++ {
		began, others := time.Now(), r.watch()
		groups := make([][]results.Run, len(b))
		var all sync.WaitGroup
		for i, g := range b {
			all.Go(func() { groups[i] = g.measure(ctx, trial) })
		}
		all.Wait()
		disturbed, took := others(), time.Since(began)
		r.pace.add(b, took)
		if disturbed < tooMuch {
			disturbed = 0
		}
		runs := slices.Concat(groups...)
		if ctx.Err() != nil && slices.ContainsFunc(runs, failed) {
			return "", nil // interrupted by the user: no measurement, and no failure
		}
		again, err := r.keep(b, groups, disturbed, took, try)
		if err != nil {
			return "", err
		}
		if !again {
			if len(runs) == 1 {
				note = inShort(runs[0])
			}
			return note, nil
		}
		r.Progress.note(label, fmt.Sprintf("other processes used %.0f %% of the machine: measured again", 100*disturbed))
	}
}

// watch begins to watch other processes.
func (r *sessionState) watch() func() float64 {
	switch {
	case r.Watch != nil:
		return r.Watch()
	case r.plan.Serving != nil:
		return watchNeighbours(r.plan.Serving())
	}
	return watchNeighbours(0)
}

// keep stores the runs of a batch and says whether to measure it again.
func (r *sessionState) keep(b batch, groups [][]results.Run, disturbed float64, took time.Duration, try int) (again bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch { // a short first measurement may have missed the others, and shows nothing
	case try > 0 && disturbed == 0:
		r.vain = 0
	case try > 0:
		r.vain++
	}
	again = disturbed > 0 && try < r.Again && r.vain < mostVain && r.again+took <= r.plan.Expect(r.Repeats)/2 && (r.spare == nil || r.spare(took))
	for i, g := range b {
		if j := slices.IndexFunc(groups[i], failed); j >= 0 && !again {
			r.failures = append(r.failures, g.label()+": "+results.Gist(groups[i][j].Failed))
		}
	}
	for _, run := range slices.Concat(groups...) {
		run.Experiment, run.Order, run.Disturbed = r.exp.ID, r.order, disturbed
		if err := r.log.Append(run); err != nil {
			return false, fmt.Errorf("a run could not be kept: %w", err)
		}
		r.add(run)
	}
	if again {
		r.again += took
	}
	return again, nil
}

func failed(run results.Run) bool { return run.Failed != "" }

// measure makes a run of every key. If there is no measurement, all of them say why.
func (g Group) measure(ctx context.Context, trial Trial) []results.Run {
	started := time.Now()
	runs, err := g.Run(ctx, trial)
	took := time.Since(started).Seconds()
	if err == nil && len(runs) != len(g.Keys) {
		err = fmt.Errorf("%d runs of %d cells", len(runs), len(g.Keys))
	}
	if err != nil {
		runs = append(runs, make([]results.Run, len(g.Keys))...)[:len(g.Keys)]
	}
	for i, k := range g.Keys {
		run := &runs[i]
		run.Setup, run.Load, run.Pattern, run.Twin = k.Setup, k.Load, k.Pattern, k.Twin
		run.Repeat, run.Started, run.Took, run.Elapsed = trial.Repeat, started, took, cmp.Or(run.Elapsed, took)
		if err != nil {
			run.Failed = err.Error()
		}
	}
	return runs
}

// inShort is a run in a few words.
func inShort(run results.Run) string {
	switch ok := run.Of("ok"); {
	case run.Failed != "":
		return "failed: " + results.Gist(run.Failed)
	case run.Killed != "":
		return run.Killed
	case run.Offered == 0:
		return ""
	case ok.Count > 0 && ok.Latency.Count() == 0: // units of work that were not timed individually
		return fmt.Sprintf("%.0f a second", run.Rate("ok"))
	default:
		return fmt.Sprintf("%.0f ok/s, %.0f refused/s, p99 %v", run.Rate("ok"), run.Rate("rejected"),
			time.Duration(ok.Latency.Quantile(0.99)).Round(time.Millisecond))
	}
}
