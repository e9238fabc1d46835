package limit

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// pass runs a backend with a given number in flight, and ends work at a given rate.
func pass(f *falls, r *rand.Rand, now *time.Duration, d time.Duration, inFlight int, rate float64, o Outcome) {
	for end := *now + d; *now < end; {
		step := time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		*now += step
		f.pass(*now, step, inFlight)
		f.end(inFlight, o, float64(25*time.Millisecond))
	}
}

func TestFallsAreSeenWhereLessIsDoneWithMore(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64 // ends per second with 100 in flight; with 10 in flight the rate is 400
		o    Outcome
		want bool
	}{
		{"the same", 400, Success, false},
		{"more", 500, Success, false},
		{"little less", 380, Success, false},
		{"three fifths", 240, Success, true},
		{"a quarter", 100, Success, true},
		{"a quarter, late", 100, Deadline, false}, // how much work was done for late callers is not known
		{"a quarter, refused below", 100, Overload, false},
	} {
		for seed := range uint64(20) {
			var f falls
			var now time.Duration
			r := rand.New(rand.NewPCG(seed, 1))
			pass(&f, r, &now, 5*time.Second, 3, 120, Success)
			pass(&f, r, &now, 5*time.Second, 10, 400, Success)
			pass(&f, r, &now, 5*time.Second, 100, c.rate, c.o)
			if from, to, before, after := f.worst(); (to > 0) != c.want {
				t.Errorf("%s, seed %d: from %d to %d, %.0f/s and %.0f/s", c.name, seed, from, to, before, after)
			}
		}
	}
}

// Twenty callers of ten slots, each of which takes exactly 20 ms: ten pieces of work end at once, and their
// callers come back at once. Half of the ends are at a concurrency of 8 to 15, which lasts for microseconds
// and looked as if it did 7,000 pieces of work a second.
func TestWorkThatEndsInLockstepIsNoFall(t *testing.T) {
	var f falls
	var now time.Duration
	for range 500 {
		now += 20 * time.Millisecond
		f.pass(now, 20*time.Millisecond, 20)
		for n := 20; n > 10; n-- {
			f.end(n, Success, float64(40*time.Millisecond))
			now += time.Microsecond
			f.pass(now, time.Microsecond, n-1)
		}
	}
	if from, to, before, after := f.worst(); to > 0 {
		t.Errorf("from %d to %d, %.0f/s and %.0f/s", from, to, before, after)
	}
}

func TestAFallIsForgottenAfterTwoEras(t *testing.T) {
	var f falls
	var now time.Duration
	r := rand.New(rand.NewPCG(1, 1))
	pass(&f, r, &now, 5*time.Second, 10, 400, Success)
	pass(&f, r, &now, 5*time.Second, 100, 200, Success)
	for era, want := range []bool{true, true, false} {
		if _, to, _, _ := f.worst(); (to > 0) != want {
			t.Errorf("after %d eras: %v", era, to > 0)
		}
		f.age()
	}
}

func TestPassiveSaysWhereItIsUnsafe(t *testing.T) {
	p := newPassive()
	if p.Unsafe() {
		t.Fatal("nothing was seen")
	}
	r := rand.New(rand.NewPCG(1, 1))
	var now time.Duration
	pass(&p.falls, r, &now, 5*time.Second, 10, 400, Success)
	pass(&p.falls, r, &now, 5*time.Second, 100, 200, Success)
	if s := p.State(); !p.Unsafe() || !strings.Contains(s, "; unsafe: the backend gets less done the more runs in it, ") {
		t.Errorf("says %q", s)
	}
}

// After a step of load much work is late. In a backend that runs all work at once, work in time took
// a fraction of the time of late work; behind a queue, nearly as long. The first case shows the
// throughput of the backend, the second the effect of the queue.
func TestAFallShowsInWorkWellInTime(t *testing.T) {
	for _, c := range []struct {
		name string
		took float64 // time of work that ended in time; late work takes 1
		rate float64
		want bool
	}{
		{"at once, half of it", 0.4, 200, true},
		{"at once, all of it", 0.4, 400, false},
		{"behind a queue", 0.95, 200, false},
	} {
		var f falls
		var now time.Duration
		r := rand.New(rand.NewPCG(1, 1))
		pass(&f, r, &now, time.Second, 10, 400, Success)
		for end := now + 10*time.Second; now < end; {
			step := time.Duration(r.ExpFloat64() / (c.rate + 400) * float64(time.Second))
			now += step
			f.pass(now, step, 300)
			if r.Float64() < c.rate/(c.rate+400) {
				f.end(300, Success, c.took)
			} else {
				f.end(300, Deadline, 1)
			}
		}
		if from, to, before, after := f.worst(); (to > 0) != c.want {
			t.Errorf("%s: from %d to %d, %.0f/s and %.0f/s", c.name, from, to, before, after)
		}
	}
}

func TestPassiveIsUnsafeWhereNothingCanBeKnown(t *testing.T) {
	oneGoroutine(t)
	law, m := watch(20, 50*time.Millisecond)
	m.deadline = 200 * time.Millisecond
	m.with(4000, 20*time.Second)
	if !law.Unsafe() {
		t.Errorf("called safe: %s", law.State())
	}
}
