package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/results"
)

func TestTheDefaultsAreSoundAndNotScaled(t *testing.T) {
	if err := Defaults().check(); err != nil || Defaults().scaled() != "" {
		t.Errorf("defaults: %v, scaled %q", err, Defaults().scaled())
	}
	if err := Quick().check(); err != nil || Quick().scaled() == "" {
		t.Errorf("quick: %v, scaled %q", err, Quick().scaled())
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"unknown part": func(c *Config) { c.Parts = []string{"magic"} },
		"no part":      func(c *Config) { c.Parts = nil },
		"measure 0s":   func(c *Config) { c.Measure = 0 },
		"warm-up -1s":  func(c *Config) { c.WarmUp = -time.Second },
		"connections":  func(c *Config) { c.Connections = mostIdle + 1 },
		"0 slots":      func(c *Config) { c.Work.Slots = 0 },
	} {
		c := Defaults()
		change(&c)
		if _, err := (Classic{c}).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Twice as many at a time as there are slots take twice as long, and no longer.
func TestAnNWayBackendLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 40 * time.Millisecond
		b, err := newBackend(NWay, overload.Work{Slots: 3, Min: each, Max: each}, 1)
		if err != nil {
			t.Fatal(err)
		}
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
		b, err := newBackend(NWay, overload.Work{Slots: 1, Min: each, Max: each}, 1)
		if err != nil {
			t.Fatal(err)
		}
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
		seen := map[spillway.Priority]int{}
		for i := range uint64(5) {
			seen[priorityOf(i*clientCount+client)]++
		}
		if seen[spillway.Critical] != 1 || seen[spillway.Low] != 1 || seen[spillway.Normal] != 3 {
			t.Fatalf("client %d: %v", client, seen)
		}
	}
}

func TestARampEndsAtTheLoadAndTheOthersBeginWithIt(t *testing.T) {
	for part, s := range scenes {
		all := s.stretches(5*time.Second, 10*time.Second)
		n := len(all)
		if all[n-2] != (stretch{s.load, 10 * time.Second}) || all[n-1] != (stretch{s.load, tail}) {
			t.Errorf("%s ends with %v", part, all[n-2:])
		}
		if s.ramps != (n > 3) || s.ramps && all[0].load != .3 {
			t.Errorf("%s: %v", part, all)
		}
	}
}

func TestWhatAServiceReportsBecomesFigures(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(n int) time.Time { return began.Add(time.Duration(n) * step) }
	s := served{Began: began, Arrivals: []uint32{500, 10, 20, 60, 10, 900}}
	for n := range 5 {
		x := sample{At: at(n)}
		x.Offered[1], x.Refused[1], x.Left[1] = uint64(100*n), uint64(40*max(n-1, 0)), uint64(10*n)
		s.Samples = append(s.Samples, x)
	}
	run := results.Run{Extra: map[string]float64{}}
	s.waves(&run, at(5)) // the first refusal is seen at step 2
	if run.Extra["arrivals_mean"] != 30 || run.Extra["wave"] != 2 {
		t.Errorf("waves: %v", run.Extra)
	}
	s.shares(&run, at(2), at(4))
	if run.Extra["share_normal"] != 50 {
		t.Errorf("shares: %v", run.Extra)
	}
	if _, ok := run.Extra["share_low"]; ok {
		t.Error("a priority without requests has a share")
	}
}

// planted makes three repeats of a cell.
func planted(part, backend, pattern string, extra map[string]float64) (runs []results.Run) {
	for n := range 3 {
		r := results.Run{
			Setup: setup(part, backend), Load: loadName(part), Pattern: pattern, Repeat: n, Elapsed: 10,
			Outcomes: []results.Outcome{{Kind: "ok", Count: 1, Latency: &histogram.Histogram{}}}, Extra: map[string]float64{},
		}
		for k, v := range extra {
			r.Extra[k] = v
			if k == "goodput" {
				r.Extra[k] += float64(n)
			}
		}
		runs = append(runs, r)
	}
	return runs
}

func TestVerdictsOnPlantedRuns(t *testing.T) {
	type figures = map[string]float64
	var runs []results.Run
	add := func(part, backend, pattern string, f figures) {
		runs = append(runs, planted(part, backend, pattern, f)...)
	}
	add(Storm, NWay, Spillway, figures{"goodput": 245, "critical": 99.8, "wave": 2, "lag_ms": 3})
	add(Storm, NWay, Saturated, figures{"goodput": 250})
	add(Storm, Degrading, Spillway, figures{"goodput": 200, "critical": 98, "wave": 4})
	add(Storm, Degrading, Saturated, figures{"goodput": 250})
	add(Leavers, NWay, Spillway, figures{"goodput": 160})
	add(Leavers, NWay, Fixed, figures{"goodput": 100})
	add(Leavers, NWay, Saturated, figures{"goodput": 240}) // 160 of them beside those that leave
	add(Leavers, Degrading, Spillway, figures{"goodput": 160})
	add(Leavers, Degrading, Fixed, figures{"goodput": 220}) // more than the 192 there are beside those that leave
	add(Leavers, Degrading, Saturated, figures{"goodput": 240})
	add(Dry, NWay, DryRun, figures{"shed": 0, "refused": 0, "share_low": 95, "share_normal": 40, "unsafe": 0})
	add(Dry, NWay, Spillway, figures{"share_low": 99, "share_normal": 47})
	add(Dry, Degrading, DryRun, figures{"shed": 0, "refused": 2})
	add(Hostile, NWay, Spillway, figures{"probe_worst_ms": 99, "memory_share": 101})
	const storm, leave, dry, hostile = "storm, ", "leavers, ", "dryrun, ", "hostile, "
	const way, degr = "N-way backend", "degrading backend"
	got := Classic{}.Judge(runs, 1)
	want := map[[2]string]results.Verdict{
		{"admission/goodput", storm + way}: results.Holds, {"admission/goodput", storm + degr}: results.Fails,
		{"admission/critical", storm + way}: results.Holds, {"admission/critical", storm + degr}: results.Fails,
		{"admission/waves", storm + way}: results.Holds, {"admission/waves", storm + degr}: results.Fails,
		{"admission/leavers", leave + way}: results.Holds, {"admission/leavers", leave + degr}: results.Fails,
		{"admission/dry-run", dry + way}: results.Holds, {"admission/dry-run", dry + degr}: results.Fails,
		{"admission/prediction", dry + way}: results.Holds,
		{"admission/warning", dry + way}:    results.Holds, {"admission/warning", dry + degr}: results.Fails,
		{"admission/probes", hostile + way}: results.Holds, {"admission/memory", hostile + way}: results.Fails,
	}
	if len(got) != len(want) {
		t.Errorf("%d claims, want %d", len(got), len(want))
	}
	for k, v := range want {
		if c := labtest.Claim(t, got, k[0], k[1]); c.Verdict != v {
			t.Errorf("%v: %s (%s), want %s", k, c.Verdict, c.Why, v)
		}
	}
}

func TestAPartThatWasNotRunIsNotJudged(t *testing.T) {
	if got := (Classic{}).Judge(planted(Hostile, NWay, Calm, nil), 1); len(got) != 2 || got[0].Verdict != results.Inconclusive {
		t.Errorf("%+v", got)
	}
}
