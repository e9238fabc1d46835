package admission

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	root "github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

// This process plays failsafe, too, by a semaphore: the program with failsafe-go is heavy.
func TestMain(m *testing.M) {
	all := maps.Clone(Experiment.Roles)
	all[RoleFailsafe] = contestant.Server(func(ctx context.Context, j service.Job, ready contestant.Ready) (*service.Served, error) {
		guard, err := holdersGuard(shortly, j.Work.Slots)
		if err != nil {
			return nil, err
		}
		return Held(ctx, j, ready, guard)
	})
	labtest.Main(m, all)
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	p, err := plan(experiment.Sized[Config](""))
	if err != nil {
		t.Fatal(err)
	}
	var runs []results.Run
	for _, k := range p.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
	}
	planted.Check(t, Experiment.Family, runs)
}

func TestBadSettingsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		`unknown part "magic"`:                  func(c *Config) { c.Part = []string{"magic"} },
		"time is 0s: want at least 200ms":       func(c *Config) { c.Time = 0 },
		"warm-up is -1s: want at least 0s":      func(c *Config) { c.WarmUp = -time.Second },
		"and the second at most 4m0s":           func(c *Config) { c.WarmUp = time.Minute },
		"connections is 50001: want 0 to 50000": func(c *Config) { c.Connections = mostIdle + 1 },
		"slots is 0: want at least 1":           func(c *Config) { c.Slots = 0 },
		"min-work 1m0s is above max-work 60ms":  func(c *Config) { c.Min = time.Minute },
		"memory-cap is -1: want at least 0":     func(c *Config) { c.MemoryCap = -1 },
	} {
		c := experiment.Sized[Config]("")
		spoil(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Experiment, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// smallSession is a session of short runs, undisturbed.
func smallSession(t *testing.T, timed time.Duration) (results.Results, []results.Run) {
	t.Helper()
	for part, s := range scenes { // nobody waits for seconds here
		t.Cleanup(func() { scenes[part] = s })
		brief := s
		brief.deadline = 300 * time.Millisecond
		scenes[part] = brief
	}
	c := experiment.Sized[Config]("quick")
	c.MostLag = time.Minute // under the race detector
	c.WarmUp, c.Time, c.Connections = 50*time.Millisecond, timed, 40
	c.Slots, c.Min, c.Max = 3, 10*time.Millisecond, 20*time.Millisecond
	undisturbed := func() func() float64 { return func() float64 { return 0 } }
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0), Watch: undisturbed}
	res, runs, err := s.Run(t.Context(), Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	return res, runs
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	res, runs := smallSession(t, 200*time.Millisecond)
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			if strings.Contains(a.Why, "was not run") { // in so short a time perhaps nothing is refused, or a priority is not sent
				t.Errorf("%s (%s): %s", claim.ID, a.Setup, a.Why)
			}
		}
		if len(claim.Answers) == 0 {
			t.Errorf("%s has no answer", claim.ID)
		}
	}
	for _, r := range runs {
		if r.Killed != "" || r.Offered == 0 {
			t.Errorf("%s %s: killed %q, offered %d", r.Setup, r.Pattern, r.Killed, r.Offered)
		}
		if r.Pattern == dry && r.Extra["refused"]+r.Extra["shed"] > 0 {
			t.Errorf("%s: a dry run refused %v", r.Setup, r.Extra)
		}
	}
}

// Twice as many at a time as there are slots take twice as long, and no longer.
func TestAnNWayBackendLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 40 * time.Millisecond
		b := newBackend(service.Job{Backend: nWay, Work: service.Work{Slots: 3, Min: each, Max: each}})
		began := time.Now()
		took := make(chan time.Duration, 6)
		for range cap(took) {
			go func() {
				if err := b.Ask(t.Context()); err != nil {
					t.Error(err)
				}
				took <- time.Since(began)
			}()
		}
		for i := range cap(took) {
			if got, want := <-took, each*time.Duration(1+i/3); got != want {
				t.Errorf("call %d took %v, want %v", i, got, want)
			}
		}
	})
}

func TestACallerThatLeavesTakesItsCallOutOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 40 * time.Millisecond
		b := newBackend(service.Job{Backend: nWay, Work: service.Work{Slots: 1, Min: each, Max: each}})
		began := time.Now()
		go func() { _ = b.Ask(t.Context()) }()
		synctest.Wait()
		brief, cancel := context.WithTimeout(t.Context(), each/2)
		defer cancel()
		if err := b.Ask(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if err := b.Ask(t.Context()); err != nil || time.Since(began) != 2*each {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestEveryClientSendsEachPriority(t *testing.T) {
	for client := range uint64(clientCount) {
		seen := map[root.Priority]int{}
		for i := range uint64(5) {
			seen[priorityOf(i*clientCount+client)]++
		}
		if seen[root.Critical] != 1 || seen[root.Low] != 1 || seen[root.Normal] != 3 {
			t.Fatalf("client %d: %v", client, seen)
		}
	}
}

func TestARampEndsAtTheLoadAndTheOthersBeginWithIt(t *testing.T) {
	c := experiment.Sized[Config]("")
	for part, s := range scenes {
		load := s.load(c)
		n, full := len(load.Stretches), s.multiple*c.Capacity()
		if n != load.Measured+2 || load.Stretches[n-2] != (service.Stretch{Rate: full, For: c.Time}) || load.Stretches[n-1] != (service.Stretch{Rate: full, For: tail}) {
			t.Errorf("%s: %+v", part, load)
		}
		if s.ramps != (n > 3) || s.ramps && load.Stretches[0].Rate != 0.3*c.Capacity() || !s.ramps && load.Stretches[0].Rate != full {
			t.Errorf("%s: %+v", part, load)
		}
	}
}

func TestWhatAServiceReportsBecomesFigures(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(n int) time.Time { return began.Add(time.Duration(n) * service.Step) }
	s := service.Served{Began: began, Arrivals: []uint32{500, 10, 20, 60, 10, 900}}
	for n := range 5 {
		s.Samples = append(s.Samples, service.Sample{At: at(n), Rejected: uint64(40 * max(n-1, 0)), ByPriority: map[root.Priority]limiter.PriorityStats{
			root.Normal: {Offered: uint64(100 * n), Rejected: uint64(40 * max(n-1, 0)), Cancelled: uint64(10 * n)},
			root.Low:    {},
		}})
	}
	got := map[string]float64{}
	waves(got, s, at(5)) // the first refusal is seen at step 2
	if got["arrivals_mean"] != 30 || got["wave"] != 2 {
		t.Errorf("waves: %v", got)
	}
	shares(got, s.Samples, at(2), at(4))
	if got["share_normal"] != 50 || got["shed"] != 80 {
		t.Errorf("shares: %v", got)
	}
	if _, ok := got["share_low"]; ok {
		t.Error("a priority without requests has a share")
	}
}
