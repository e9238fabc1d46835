package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/mixes"
	"github.com/spillway-go/spillway/lab/overload"
)

func TestTheSemaphoreOfMixesRefusesAfterItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := overload.SemaphoreFor(1, mixes.Wait)
		held, done := context.WithCancel(t.Context())
		go func() { _ = g.Do(t.Context(), func(context.Context) error { <-held.Done(); return nil }) }()
		synctest.Wait()
		began := time.Now()
		err := g.Do(t.Context(), func(context.Context) error { return nil })
		if took := time.Since(began); !errors.Is(err, spillway.ErrRejected) || took != mixes.Wait {
			t.Errorf("%v after %v", err, took)
		}
		soon, cancel := context.WithTimeout(t.Context(), mixes.Wait/2)
		defer cancel()
		if err := g.Do(soon, func(context.Context) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a deadline before its wait: %v", err)
		}
		done()
		if err := g.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }); err != nil {
			t.Errorf("a free slot: %v", err)
		}
	})
}

// An interrupted query of SQLite says nothing of a deadline: the limiter once took it for a
// fault of the database.
func TestAnswersOfMixesSayWhatBecameOfTheQuery(t *testing.T) {
	broken := errors.New("interrupted")
	for _, c := range []struct {
		query  string
		ended  bool
		admit  error // of the contestant
		ask    error
		status int
		seen   error // by the contestant
	}{
		{query: "rows=10&passes=2", status: 200},
		{query: "rows=10&passes=2", admit: &spillway.Rejection{}, status: 503},
		{query: "rows=10&passes=2", ask: broken, status: 500, seen: broken},
		{query: "rows=10&passes=2", ended: true, ask: broken, status: 504, seen: context.Canceled},
		{query: "rows=0&passes=2", status: 400},
		{query: fmt.Sprintf("rows=%d&passes=1", mixes.Events), status: 400},
		{query: "rows=10&passes=none", status: 400},
	} {
		g, err := mixesGuard(mixes.None, 0)
		if err != nil {
			t.Fatal(err)
		}
		var seen error
		g.Admit = func(ctx context.Context, fn func(context.Context) error) error {
			if c.admit != nil {
				return c.admit
			}
			seen = fn(ctx)
			return seen
		}
		ctx, cancel := context.WithCancel(t.Context())
		if c.ended {
			cancel()
		}
		w := httptest.NewRecorder()
		ask := func(_ context.Context, args ...any) error {
			if from, to := args[0].(int), args[1].(int); from < 1 || to-from != 9 || to > mixes.Events || args[2] != 2 {
				t.Errorf("asked for %v", args)
			}
			return c.ask
		}
		sumsBehind(g, ask).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sums?"+c.query, nil).WithContext(ctx))
		cancel()
		if w.Code != c.status || !errors.Is(seen, c.seen) {
			t.Errorf("%s: %d, the contestant saw %v", c.query, w.Code, seen)
		}
	}
}

func TestASumIsTakenAsOftenAsItIsAskedFor(t *testing.T) {
	database, err := openSummed(t.Context(), mixes.SQLite, "", 100, strings.Replace(summedOften, "SELECT 0,", "SELECT 1/(count(*) = 10 * $3),", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer database.close()
	for _, passes := range []int{1, 7} {
		if err := database.ask(t.Context(), 5, 14, passes); err != nil { // NULL, where the count is another
			t.Errorf("%d passes: %v", passes, err)
		}
	}
}

func TestEveryContestantOfMixesLetsWorkThrough(t *testing.T) {
	for _, name := range []string{mixes.None, mixes.Semaphore, mixes.Failsafe, mixes.Spillway} {
		g, err := mixesGuard(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("tried and failed")
		if err := g.Do(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) || g.Running()+g.Waiting() != 0 {
			t.Errorf("%s: %v, %d running, %d waiting", name, err, g.Running(), g.Waiting())
		}
		g.Close()
	}
	if _, err := mixesGuard("magic", 2); err == nil {
		t.Error("an unknown contestant was made")
	}
}

func TestASmallSessionOfMixesAddsUp(t *testing.T) {
	soak.WithoutRace(t)
	c := experiment.Sized[mixes.Config]("quick")
	c.MostLag = time.Minute // on a busy machine
	c.Database, c.Mix, c.Contestant = []string{mixes.SQLite}, []string{"lengths"}, []string{mixes.Semaphore, mixes.Spillway}
	c.WarmUp, c.Time = 50*time.Millisecond, 300*time.Millisecond
	_, runs := session(t, mixes.Experiment, &c)
	const each = 1 + 6                       // runs: of all kinds, and of each
	if want := 5 * each; len(runs) != want { // two contestants at two loads, and a twin
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	for i, r := range runs {
		sum := uint64(0)
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		if r.Failed != "" || r.Killed != "" || sum != r.Offered || r.Of("error").Count > 0 || r.Elapsed != c.Time.Seconds() {
			t.Errorf("%s %s %s: failed %q, killed %q, offered %d, outcomes %d, errors %d, %v s", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed, r.Offered, sum, r.Of("error").Count, r.Elapsed)
		}
		if i%each == 0 {
			byKind := uint64(0)
			for _, k := range runs[i+1 : i+each] {
				byKind += k.Offered
			}
			if r.Offered != byKind {
				t.Errorf("%s %s %s: %d were offered, by kind %d", r.Setup, r.Load, r.Pattern, r.Offered, byKind)
			}
		}
	}
}
