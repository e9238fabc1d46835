package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// rolePanic looks up once with a cache that panics.
const rolePanic = "fan-panic"

// staged runs the demonstrations.
var staged = map[string]func(context.Context, struct{}) (results.Demo, error){
	"lost-answers":    inVirtualTime(loseAnswers),
	"slow-failure":    inVirtualTime(failSlowly),
	"swallowed-error": inVirtualTime(swallow),
	"killed-by-panic": showPanic,
}

func inVirtualTime(f func(context.Context, struct{}) (results.Demo, error)) func(context.Context, struct{}) (results.Demo, error) {
	if usage.Race {
		f = func(context.Context, struct{}) (results.Demo, error) {
			return results.Demo{Outcome: "Not shown: this program was built with the race detector, and the fault is a data race."}, nil
		}
	}
	return bubble.Func(f)
}

// shown is what was seen of the printed code and of ours.
func shown(outcome, what string, printed, ours float64) results.Demo {
	return results.Demo{Outcome: outcome, Counts: []results.NamedCount{{Name: what + ", as printed", N: printed}, {Name: what + ", ours", N: ours}}}
}

// answering is a source that waits and then answers.
func answering(after time.Duration, err error, ids ...int) find {
	return source(func() { time.Sleep(after) }, err, ids...)
}

func loseAnswers(ctx context.Context, _ struct{}) (results.Demo, error) {
	const lookups = 1000
	demo := results.Demo{Counts: []results.NamedCount{{Name: "lookups each", N: lookups}}}
	var told []string
	for _, t := range fan.Published {
		t.Sources = 2
		for _, name := range []string{fan.AsPrinted, fan.Spillway} {
			look, err := newLookup(name, newSources(fan.Virtual, t), t)
			if err != nil {
				return demo, err
			}
			p := player{name: name, find: look, whole: whole(t)}
			p.run(ctx, lookups)
			if err := p.check(); err != nil {
				return demo, err
			}
			demo.Counts = append(demo.Counts, results.NamedCount{Name: fmt.Sprintf("lost at %s, %s", t.Load, name), N: float64(p.missed)})
			if name == fan.AsPrinted {
				told = append(told, fmt.Sprintf("%d at %s", p.missed, t.Load))
			}
		}
	}
	demo.Outcome = fmt.Sprintf("Of the cache's answers to %d lookups as printed, in virtual time, these were lost: %s; of ours none. What is lost where the cache is quicker depends on the scheduler alone: see the share lost while computing.",
		lookups, strings.Join(told, ", "))
	return demo, nil
}

func failSlowly(ctx context.Context, _ struct{}) (results.Demo, error) {
	const cacheTakes = 5 * time.Second
	s := sources{answering(0, errors.New("connection refused")), []find{answering(cacheTakes, nil, 2)}}
	var took []time.Duration
	for _, name := range []string{fan.AsPrinted, fan.Spillway} {
		look, err := newLookup(name, s, fan.Table{})
		if err != nil {
			return results.Demo{}, err
		}
		began := time.Now()
		if _, err := look(ctx, query{}); err == nil {
			return results.Demo{}, fmt.Errorf("%s did not notice that the database failed", name)
		}
		took = append(took, time.Since(began))
		time.Sleep(cacheTakes) // lets running branches end: virtual time stops with this function
	}
	return shown(fmt.Sprintf("The database fails at once, the cache takes %v: as printed the caller learns it after %v, from ours after %v (virtual time).", cacheTakes, took[0], took[1]),
		"ms", 1e3*took[0].Seconds(), 1e3*took[1].Seconds()), nil
}

func swallow(ctx context.Context, _ struct{}) (results.Demo, error) {
	down := errors.New("cache: i/o timeout")
	s := sources{answering(time.Millisecond, nil, 1), []find{answering(0, down)}}
	if _, err := s.asPrinted(ctx, query{}); err != nil {
		return results.Demo{}, fmt.Errorf("as printed it reports %w after all", err)
	}
	f, err := newFanout(s, fanout.Config{})
	if err != nil {
		return results.Demo{}, err
	}
	got, err := f.Do(ctx, query{})
	if err != nil || len(got.Missing) != 1 || !errors.Is(got.Missing[0].Err, down) {
		return results.Demo{}, fmt.Errorf("ours should keep the users and name the cache: %v, missing %v", err, got.Missing)
	}
	return shown(fmt.Sprintf("The cache fails: as printed the caller gets the database's users and a nil error; from ours the same users, and what is missing: %q.", got.Missing[0].Error()),
		"errors seen", 0, 1), nil
}

// panicIn returns the branch whose panic it was told of.
func panicIn(ctx context.Context, name string) (branch string, err error) {
	s := sources{answering(10*time.Millisecond, nil, 1), []find{func(context.Context, query) (*users, error) { panic("nil map in the cache") }}}
	if name == fan.AsPrinted {
		_, err := s.asPrinted(ctx, query{})
		return "", err
	}
	f, err := newFanout(s, fanout.Config{Mode: fanout.Parallel})
	if err != nil {
		return "", err
	}
	got, err := f.Do(ctx, query{})
	for _, m := range got.Missing {
		if p, ok := errors.AsType[*spillway.PanicError](m.Err); ok && len(p.Stack) > 0 {
			branch = m.Branch
		}
	}
	return branch, err
}

func showPanic(ctx context.Context, _ struct{}) (demo results.Demo, err error) {
	branch := ""
	_, died := contestant.Run(ctx, contestant.Spec{Role: rolePanic, Input: fan.AsPrinted}, &branch)
	_, err = contestant.Run(ctx, contestant.Spec{Role: rolePanic, Input: fan.Spillway}, &branch)
	switch {
	case err != nil:
		return demo, err
	case died == nil || !strings.Contains(died.Error(), "panic: nil map in the cache"):
		return demo, fmt.Errorf("as printed a panic should end the process, and not: %v", died)
	case branch != "cache 1":
		return demo, fmt.Errorf("ours named %q as the branch that panicked", branch)
	}
	return shown("A cache panics: as printed the whole process ends; from ours the caller gets the database's users, and the panic with its stack as the error of \"cache 1\".", "processes ended", 1, 0), nil
}
