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
	part   *part
	batch  string // what is measured
	repeat int
	label  string
	uses   float64              // the share of the processors, 1: it runs alone
	expect func() time.Duration // may change when something else was measured
	run    func(ctx context.Context) (note string, err error)
}

// steps are everything that is left to do.
func (p *part) steps() []step {
	return p.measurements(p.res.Repeats, func(batch, int) bool { return true })
}

// measurements are the batches that are wanted and left to measure: in every repeat in a
// new random order, so that slow drift over the session affects every contestant.
func (p *part) measurements(repeats int, wanted func(b batch, repeat int) bool) (steps []step) {
	for repeat := range repeats {
		rng := rand.New(rand.NewPCG(p.res.Seed, uint64(repeat)))
		trial := Trial{Repeat: repeat, Seed: rng.Uint64()}
		batches := p.plan.batches()
		for _, i := range rng.Perm(len(batches)) {
			b := batches[i]
			if !wanted(b, repeat) || p.measured(b, repeat) {
				continue
			}
			label := fmt.Sprintf("%srepeat %d of %d · %s", p.name, repeat+1, repeats, b.label())
			steps = append(steps, step{
				part: p, batch: fmt.Sprintf("%s%d", p.name, i), repeat: repeat, label: label, uses: b.uses(),
				expect: func() time.Duration { return p.expected(b) },
				run:    func(ctx context.Context) (string, error) { return p.measure(ctx, label, b, trial) },
			})
		}
	}
	return steps
}

// measured reports whether a session that is resumed has measured the batch in that repeat.
func (p *part) measured(b batch, repeat int) bool {
	for _, g := range b {
		for _, k := range g.Keys {
			if !slices.ContainsFunc(p.runs, func(run results.Run) bool {
				return run.Repeat == repeat && run.Failed == "" && ledger.KeyOf(&run) == k
			}) {
				return false
			}
		}
	}
	return true
}

// expected is how long a batch should take.
func (p *part) expected(b batch) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return b.expect(p.took, p.s.pace.slower())
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
func (p *part) measure(ctx context.Context, label string, b batch, trial Trial) (note string, err error) {
	for try := 0; ; try++ {
		began, others := time.Now(), p.watch()
		groups := make([][]results.Run, len(b))
		var all sync.WaitGroup
		for i, g := range b {
			all.Go(func() { groups[i] = g.measure(ctx, trial) })
		}
		all.Wait()
		disturbed, took := others(), time.Since(began)
		p.s.pace.add(b, took)
		if disturbed < tooMuch {
			disturbed = 0
		}
		runs := slices.Concat(groups...)
		if ctx.Err() != nil && slices.ContainsFunc(runs, failed) {
			return "", nil // interrupted by the user: no measurement, and no failure
		}
		again, err := p.keep(b, groups, disturbed, took, try)
		if err != nil {
			return "", err
		}
		if !again {
			if len(runs) == 1 {
				note = inShort(runs[0])
			}
			return note, nil
		}
		p.s.Progress.note(label, fmt.Sprintf("other processes used %.0f %% of the machine: measured again", 100*disturbed))
	}
}

// watch begins to watch other processes.
func (p *part) watch() func() float64 {
	switch {
	case p.s.Watch != nil:
		return p.s.Watch()
	case p.plan.Serving != nil:
		return watchNeighbours(p.plan.Serving())
	}
	return watchNeighbours(0)
}

// keep stores the runs of a batch and says whether to measure it again.
func (p *part) keep(b batch, groups [][]results.Run, disturbed float64, took time.Duration, try int) (again bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch { // a short first measurement may have missed the others, and shows nothing
	case try > 0 && disturbed == 0:
		p.vain = 0
	case try > 0:
		p.vain++
	}
	again = disturbed > 0 && try < p.s.Again && p.vain < mostVain && p.again+took <= p.plan.Expect(p.res.Repeats)/2 && p.s.spare(took)
	for i, g := range b {
		if j := slices.IndexFunc(groups[i], failed); j >= 0 && !again {
			p.failures = append(p.failures, g.label()+": "+results.Gist(groups[i][j].Failed))
		}
	}
	for _, run := range slices.Concat(groups...) {
		run.Experiment, run.Order, run.Disturbed = p.exp.ID, p.order, disturbed
		if err := p.log.Append(run); err != nil {
			return false, fmt.Errorf("a run could not be kept: %w", err)
		}
		p.add(run)
	}
	if again {
		p.again += took
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
