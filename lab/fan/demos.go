package fan

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
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Demonstrations, each in a child process.
const (
	lostAnswers   = "lost-answers"
	slowFailure   = "slow-failure"
	swallowed     = "swallowed-error"
	killedByPanic = "killed-by-panic"
	panicking     = "panicking" // the child of the last one
)

// staged are the roles of the child processes.
var staged = map[string]func(context.Context, string) (results.Demo, error){
	lostAnswers: inVirtualTime(loseAnswers),
	slowFailure: inVirtualTime(failSlowly),
	swallowed:   inVirtualTime(swallow),
	panicking:   panicIn,
}

func inVirtualTime(f func(context.Context) (results.Demo, error)) func(context.Context, string) (results.Demo, error) {
	return func(ctx context.Context, _ string) (results.Demo, error) {
		if raceEnabled {
			return results.Demo{Outcome: "Not shown: this program was built with the race detector, and the fault is a data race."}, nil
		}
		return bubble.Run(ctx, f)
	}
}

func demos() []experiment.Demo {
	child := func(id, title string) experiment.Demo {
		return experiment.Demo{ID: id, Title: title, Expect: time.Second, Run: func(ctx context.Context) (results.Demo, error) {
			var demo results.Demo
			_, err := contestant.Run(ctx, contestant.Spec{Role: roleDemo + id, Input: ""}, &demo)
			demo.ID, demo.Title = id, title
			return demo, err
		}}
	}
	title := "the panic in a cache that kills the process"
	return []experiment.Demo{
		child(lostAnswers, "the answers that are read before they are there"),
		child(slowFailure, "the database that fails at once, and the caller that waits for the cache"),
		child(swallowed, "the cache's error that is dropped"),
		{ID: killedByPanic, Title: title, Expect: time.Second, Run: func(ctx context.Context) (results.Demo, error) {
			demo, err := showPanic(ctx)
			demo.ID, demo.Title = killedByPanic, title
			return demo, err
		}},
	}
}

// answering is a source that waits and then answers.
func answering(after time.Duration, err error, ids ...int) find {
	found := &users{}
	for _, id := range ids {
		found.list = append(found.list, user{ID: id})
	}
	return func(ctx context.Context, _ query) (*users, error) {
		time.Sleep(after) // and ignores its context, as published
		if err != nil {
			return nil, err
		}
		return found, nil
	}
}

func loseAnswers(ctx context.Context) (results.Demo, error) {
	const lookups = 1000
	demo := results.Demo{Counts: []results.NamedCount{{Name: "lookups each", N: lookups}}}
	var told []string
	for _, d := range published {
		for _, name := range []string{AsPrinted, Spillway} {
			s := newSources(Virtual, 2, d[0], d[1])
			look, err := newLookup(name, s)
			if err != nil {
				return demo, err
			}
			lost := 0
			for range lookups {
				a, err := look(ctx, query{})
				if err != nil {
					return demo, err
				}
				lost += s.whole() - len(a.Users)
			}
			size := strings.TrimPrefix(lookupLoad(2, d), "n = 2, ")
			demo.Counts = append(demo.Counts, results.NamedCount{Name: fmt.Sprintf("lost at %s, %s", size, name), N: float64(lost)})
			if name == AsPrinted {
				told = append(told, fmt.Sprintf("%d at %s", lost, size))
			} else if lost > 0 {
				return demo, fmt.Errorf("%s lost %d answers", name, lost)
			}
		}
	}
	demo.Outcome = fmt.Sprintf("Of the cache's answers to %d lookups as printed, in virtual time, these were lost: %s; of ours none. What is lost where the cache is quicker depends on the scheduler alone: see the share lost while computing.",
		lookups, strings.Join(told, ", "))
	return demo, nil
}

func failSlowly(ctx context.Context) (results.Demo, error) {
	const cacheTakes = 5 * time.Second
	s := sources{Database: answering(0, errors.New("connection refused")), Caches: []find{answering(cacheTakes, nil, 2)}}
	took := map[string]time.Duration{}
	for _, name := range []string{AsPrinted, Spillway} {
		look, err := newLookup(name, s)
		if err != nil {
			return results.Demo{}, err
		}
		began := time.Now()
		if _, err := look(ctx, query{}); err == nil {
			return results.Demo{}, fmt.Errorf("%s did not notice that the database failed", name)
		}
		took[name] = time.Since(began)
		time.Sleep(cacheTakes) // lets running branches end: virtual time stops with this function
	}
	return results.Demo{
		Outcome: fmt.Sprintf("The database fails at once, the cache takes %v: as printed the caller learns it after %v, from ours after %v (virtual time).", cacheTakes, took[AsPrinted], took[Spillway]),
		Counts:  []results.NamedCount{{Name: "ms, as printed", N: micros(took[AsPrinted]) / 1000}, {Name: "ms, ours", N: micros(took[Spillway]) / 1000}},
	}, nil
}

func swallow(ctx context.Context) (results.Demo, error) {
	down := errors.New("cache: i/o timeout")
	s := sources{Database: answering(time.Millisecond, nil, 1), Caches: []find{answering(0, down)}}
	printed, err := newLookup(AsPrinted, s)
	if err != nil {
		return results.Demo{}, err
	}
	if _, err := printed(ctx, query{}); err != nil {
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
	return results.Demo{
		Outcome: fmt.Sprintf("The cache fails: as printed the caller gets the database's users and a nil error; from ours the same users, and what is missing: %q.", got.Missing[0].Error()),
		Counts:  []results.NamedCount{{Name: "errors seen, as printed", N: 0}, {Name: "errors seen, ours", N: 1}},
	}, nil
}

// panicIn looks up once with a cache that panics.
func panicIn(ctx context.Context, name string) (demo results.Demo, err error) {
	s := sources{Database: answering(10*time.Millisecond, nil, 1), Caches: []find{func(context.Context, query) (*users, error) { panic("nil map in the cache") }}}
	if name != Spillway {
		look, err := newLookup(name, s)
		if err != nil {
			return demo, err
		}
		_, err = look(ctx, query{})
		return demo, err
	}
	f, err := newFanout(s, fanout.Config{Mode: fanout.Parallel})
	if err != nil {
		return demo, err
	}
	got, err := f.Do(ctx, query{})
	if err != nil {
		return demo, err
	}
	for _, m := range got.Missing {
		if p, ok := errors.AsType[*spillway.PanicError](m.Err); ok && len(p.Stack) > 0 {
			demo.Outcome = m.Branch
		}
	}
	return demo, nil
}

func showPanic(ctx context.Context) (results.Demo, error) {
	var demo results.Demo
	_, died := contestant.Run(ctx, contestant.Spec{Role: roleDemo + panicking, Input: AsPrinted}, &demo)
	if ctx.Err() != nil {
		return demo, ctx.Err()
	}
	if died == nil || !strings.Contains(died.Error(), "panic: nil map in the cache") {
		return demo, fmt.Errorf("as printed a panic should end the process: %w", died)
	}
	if _, err := contestant.Run(ctx, contestant.Spec{Role: roleDemo + panicking, Input: Spillway}, &demo); err != nil {
		return demo, err
	}
	if demo.Outcome != "cache 1" {
		return demo, fmt.Errorf("ours named %q as the branch that panicked", demo.Outcome)
	}
	return results.Demo{
		Outcome: "A cache panics: as printed the whole process ends; from ours the caller gets the database's users, and the panic with its stack as the error of \"cache 1\".",
		Counts:  []results.NamedCount{{Name: "processes ended, as printed", N: 1}, {Name: "processes ended, ours", N: 0}},
	}, nil
}
