package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/pools"
)

func TestMain(m *testing.M) { labtest.Main(m, roles()) }

func TestEverySubmitterRunsEveryJobWithinItsBound(t *testing.T) {
	const workers, jobs = 3, 200
	for _, name := range pools.Submitters() {
		s, err := newSubmitter(name, workers, 4, false)
		if err != nil {
			t.Fatal(err)
		}
		var running, most, done atomic.Int64
		j := newJob(func() {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			running.Add(-1)
			done.Add(1)
		})
		ended := make(chan struct{})
		for range jobs {
			s.submit(j)
		}
		s.submit(newJob(func() { close(ended) }))
		<-ended
		s.close()
		// ants ends without waiting: then only the bound is checked.
		if n := done.Load(); most.Load() > workers || n != jobs && name != pools.Ants {
			t.Errorf("%s: %d of %d jobs, %d at once with %d workers", name, n, jobs, most.Load(), workers)
		}
	}
}

func TestEveryCallerAnswersItsOwnClient(t *testing.T) {
	for _, name := range pools.Callers() {
		c, err := newCaller(name, 2, 4, func() {})
		if err != nil {
			t.Fatal(err)
		}
		a, b := c.client(), c.client()
		for x := range 50 {
			if got, other := a(x), b(100*x); got != x+1 || other != 100*x+1 {
				t.Errorf("%s answered %d and %d to %d and %d", name, got, other, x, 100*x)
			}
		}
		c.close()
	}
}

func TestAMissingAbilityIsAnError(t *testing.T) {
	for _, b := range []pools.Bout{{What: pools.Submitting}, {What: pools.Refusing}, {What: "sleep"}} {
		if _, err := open(b, pools.Entry{Contestant: pools.Tunny, Workers: 1}, func() {}); err == nil {
			t.Errorf("tunny can %s", b.What)
		}
	}
	if _, err := open(pools.Bout{What: pools.Refusing}, pools.Entry{Contestant: pools.Conc, Workers: 1}, func() {}); err == nil {
		t.Error("conc refuses")
	}
	if _, err := open(pools.Bout{What: pools.Calling}, pools.Entry{Contestant: pools.Ants, Workers: 1}, func() {}); err == nil {
		t.Error("ants returns results")
	}
}

// shortest is the least time that sizing measures for.
const shortest = 100 * time.Millisecond

// tiny has every part at its smallest size.
func tiny() pools.Config {
	c := pools.Defaults()
	c.Works = []time.Duration{0, time.Microsecond}
	c.Producers, c.Workers = []int{1, 4}, []int{2, 3}
	c.Rounds, c.Time = 1, 50*time.Microsecond
	c.BurstJobs, c.BurstWorkers, c.BurstWork = 100, 10, time.Millisecond
	c.Sizes, c.Settle, c.Measure = []int{1}, shortest, shortest
	return c
}

func TestASessionFillsEveryCell(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some thirty processes")
	}
	dir := t.TempDir()
	res, runs, err := experiment.Session{Dir: dir, Repeats: 1, Seed: 1}.Run(t.Context(), pools.Experiment{Config: tiny()})
	if err != nil {
		t.Fatal(err)
	}
	if res.Partial != "" {
		t.Error(res.Partial)
	}
	setups := map[string]int{}
	for _, r := range runs {
		setups[r.Setup]++
		switch {
		case r.Failed != "" || r.Killed != "":
			t.Errorf("%s %s %s: %s%s", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed)
		case strings.HasPrefix(r.Setup, "sizing"):
			if r.Offered == 0 {
				t.Errorf("%s %s %s: nothing offered", r.Setup, r.Load, r.Pattern)
			}
		case r.Setup == "memory" || r.Setup == "burst":
		case r.Extra["ns"] <= 0 || r.Blocks["ns"][0] != r.Extra["ns"] || r.Extra["behind"] <= 0:
			t.Errorf("%s %s %s: %v", r.Setup, r.Load, r.Pattern, r.Extra)
		}
	}
	// Contestants and Spillway's twin, by two numbers of producers and of
	// workers; refusals have one number of workers.
	for setup, want := range map[string]int{
		"no-op jobs": 9 * 4, "1 µs jobs": 9 * 4, "refusal by a full pool": 7 * 2, "a typed result": 5 * 4, "memory": 8, "burst": 5,
		"sizing, CPU-bound": 4, "sizing, I/O-bound": 4, "sizing, mixed": 4,
	} {
		if setups[setup] != want {
			t.Errorf("%d runs of %s, want %d", setups[setup], setup, want)
		}
	}
	for _, c := range res.Claims {
		if c.ID == "pools/sizing" {
			continue // in so short a time perhaps no job ends in time with any size
		}
		if c.Runs != 1 || c.MoreRuns == 0 && !strings.Contains(c.Rule, "none") {
			t.Errorf("%s %s from one repeat: %+v", c.ID, c.Setup, c)
		}
	}
}

func TestABoutEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := play(ctx, pools.Bout{What: pools.Submitting, Producers: 1, Rounds: 1, Entries: []pools.Entry{{Contestant: pools.Spillway, Workers: 1}}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
