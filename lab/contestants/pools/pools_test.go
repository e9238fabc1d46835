package main

import (
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/pools"
)

func TestMain(m *testing.M) {
	all := maps.Clone(roles)
	maps.Copy(all, pools.Experiment.Roles)
	labtest.Main(m, all)
}

func TestEverySubmitterRunsEveryJobWithinItsBound(t *testing.T) {
	const workers, jobs = 3, 200
	for _, name := range pools.Submitters {
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
	for _, name := range pools.Callers {
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

// Five refusals in a row once passed for a full pool. On a busy machine the worker took
// its first job later, made room, and a bout counted a job that a full pool had taken.
func TestAPoolWhoseWorkerBeginsLateIsNotFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 1
		queued, refusals, working := 0, 0, false
		late := submitter{try: func(*job) bool {
			if refusals == 20 && !working {
				queued, working = queued-1, true
			}
			if queued == room {
				refusals++
				return false
			}
			queued++
			return true
		}}
		refused, err := fill(late, nil, func() bool { return working })
		if err != nil || late.try(nil) || int(refused.Load()) != refusals-1 {
			t.Errorf("%v, %d in the queue, %d refusals of %d", err, queued, refused.Load(), refusals)
		}

		_, err = fill(late, nil, func() bool { return false })
		if err == nil || !strings.Contains(err.Error(), "workers") {
			t.Errorf("workers that never begin: %v", err)
		}
	})
}

func TestAMissingAbilityIsAnError(t *testing.T) {
	for name, open := range map[string]opener{pools.Tunny: openSubmitting, pools.Conc: openRefusing, pools.Ants: openCalling} {
		if _, err := open(pools.Bout{Contestant: name, Workers: 1}, func() {}); err == nil {
			t.Errorf("%s can do everything", name)
		}
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	c := experiment.Sized[pools.Config]("quick")
	c.Rounds, c.Time, c.Jobs = 1, 50*time.Microsecond, 100
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}
	res, runs, err := s.Run(t.Context(), pools.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	for _, claim := range res.Claims {
		if len(claim.Answers) == 0 {
			t.Errorf("%s has no answer", claim.ID)
		}
		for _, a := range claim.Answers {
			if a.Missing && !strings.Contains(a.Why, "is missing in repeat") && claim.ID != "pool-sizing" { // which is not run
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
	setups := map[string]int{}
	for _, r := range runs {
		setups[r.Setup]++
		switch {
		case r.Failed != "" || r.Killed != "":
			t.Errorf("%s %s %s: %s%s", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed)
		case r.Setup == "memory" || r.Setup == "burst":
		case r.Extra["ns"] <= 0 || r.Pattern != pools.Spillway && r.Extra["behind"] <= 0:
			t.Errorf("%s %s %s: %v", r.Setup, r.Load, r.Pattern, r.Extra)
		}
	}
	// Contestants and Spillway's twin, by the numbers of producers and of workers.
	submitters, refusers := len(pools.Submitters)+1, len(pools.Refusers)+1
	callers := len(slices.Compact([]int{1, runtime.GOMAXPROCS(0), 1000}))
	for setup, want := range map[string]int{
		"no-op jobs": submitters * 6, "1 µs jobs": submitters * 6, "20 µs jobs": submitters * 6, "refusal by a full pool": refusers * 2, "a typed result": (len(pools.Callers) + 1) * callers * 2, "memory": 8, "burst": 6,
	} {
		if setups[setup] != want {
			t.Errorf("%d runs of %s, want %d", setups[setup], setup, want)
		}
	}
}
