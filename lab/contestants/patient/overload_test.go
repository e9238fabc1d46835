package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/results"
)

func TestFailsafeAdmitsAndRefusesLikeTheOthers(t *testing.T) {
	g := failsafe()
	defer g.Close()
	broken := errors.New("tried and failed")
	for range 5 {
		running := 0
		if err := g.Do(t.Context(), func(context.Context) error { running = g.Running(); return broken }); !errors.Is(err, broken) || running != 1 {
			t.Errorf("%v, %d running", err, running)
		}
	}
	if g.Running() != 0 || g.Waiting() != 0 || g.Limit() < 1 {
		t.Errorf("at rest %d running, %d waiting, limit %d", g.Running(), g.Waiting(), g.Limit())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // until the first refusal, however late the goroutines begin
	defer cancel()
	var refused atomic.Bool
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if errors.Is(g.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }), spillway.ErrRejected) {
				refused.Store(true)
				cancel()
			}
		})
	}
	all.Wait()
	if !refused.Load() {
		t.Error("it refused nothing")
	}
}

// An interrupted query of SQLite says nothing of a deadline: the limiter once took it for a
// fault of the database.
func TestAnswersOfSumsSayWhatBecameOfTheQuery(t *testing.T) {
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
		{query: "rows=0&passes=2", status: 400, seen: overload.ErrRequest},
		{query: fmt.Sprintf("rows=%d&passes=1", overload.Events), status: 400, seen: overload.ErrRequest},
		{query: "rows=10&passes=none", status: 400, seen: overload.ErrRequest},
	} {
		var seen error
		g := &overload.Guard{Admit: func(ctx context.Context, fn func(context.Context) error) error {
			if c.admit != nil {
				return c.admit
			}
			seen = fn(ctx)
			return seen
		}}
		ctx, cancel := context.WithCancel(t.Context())
		if c.ended {
			cancel()
		}
		w := httptest.NewRecorder()
		ask := func(_ context.Context, args ...any) error {
			if from, to := args[0].(int), args[1].(int); from < 1 || to-from != 9 || to > overload.Events || args[2] != 2 {
				t.Errorf("asked for %v", args)
			}
			return c.ask
		}
		g.Behind(sumsOf(ask), 0).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sums?"+c.query, nil).WithContext(ctx))
		cancel()
		if w.Code != c.status || !errors.Is(seen, c.seen) {
			t.Errorf("%s: %d, the contestant saw %v", c.query, w.Code, seen)
		}
	}
}

func TestASumIsTakenAsOftenAsItIsAskedFor(t *testing.T) {
	database, err := openSummed(t.Context(), overload.SQLite, "", 100, strings.Replace(summedOften, "SELECT 0,", "SELECT 1/(count(*) = 10 * $3),", 1))
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

// small are short sessions of the experiments of overload whose services this program has.
var small = []struct {
	of       *experiment.Experiment
	scenes   string
	by       []string // the contestants; nil: all
	postgres bool
	runs     int
}{
	{overload.Experiment, "1.5x", nil, false, 8},
	{overload.Saturation, "around", nil, false, 2 * 5},
	{overload.Saturation, "sort,hotrows", []string{overload.SemaphoreTry}, true, 2 * 2},
	{overload.Mixes, "sqlite-lengths", []string{overload.Semaphore, overload.Spillway}, false, 5 * 7}, // of all kinds, and of each
	{overload.Admission, "holders", []string{overload.Failsafe}, false, 4},
}

func TestSmallSessionsOfOverloadAddUp(t *testing.T) {
	soak.WithoutRace(t)
	for _, s := range small {
		t.Run(s.of.ID+" "+s.scenes, func(t *testing.T) {
			smallOverload(t, s.of, s.scenes, s.by, s.postgres, .02, s.runs)
		})
	}
}

// smallOverload is a session of some scenes, undisturbed, whose runs add up.
func smallOverload(t *testing.T, e *experiment.Experiment, scenes string, by []string, postgres bool, pace float64, want int) (results.Results, []results.Run) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // of the SQLite file
		t.Setenv(name, t.TempDir())
	}
	c := experiment.Sized[overload.Config]("quick")
	c.MostLag, c.Pace, c.Scene, c.Contestant = time.Minute, pace, strings.Split(scenes, ","), by // on a busy machine
	if postgres {
		c.Postgres = server(t)
	}
	res, runs := session(t, e, &c)
	if len(runs) != want {
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	for _, r := range runs {
		sum := uint64(0)
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		if r.Failed != "" || r.Killed != "" || sum != r.Offered || r.Of("error").Count > 0 || r.Params["pace"] == nil {
			t.Errorf("%s %s %s: failed %q, killed %q, offered %d, outcomes %d, errors %d, %v", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed, r.Offered, sum, r.Of("error").Count, r.Params)
		}
	}
	return res, runs
}
