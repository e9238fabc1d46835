package fanout

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// workload determines how long a call of n branches takes in either mode, given the number of
// processors and the cost of starting a goroutine.
type workload struct {
	n     int
	each  time.Duration
	procs int // free processors; enough for all branches if branches wait
	start time.Duration
}

func (w workload) cost(parallel bool) (wall, sum, longest time.Duration) {
	sum = time.Duration(w.n) * w.each
	if !parallel {
		return sum, sum, w.each
	}
	atOnce := min(w.n, w.procs)
	wall = time.Duration((w.n+atOnce-1)/atOnce)*w.each + 2*time.Microsecond + time.Duration(w.n)*w.start
	return wall, sum + sum/10, w.each + w.each/10 // colder caches
}

func (w workload) best() (parallel bool, wall time.Duration, clear bool) {
	seq, _, _ := w.cost(false)
	par, _, _ := w.cost(true)
	return par < seq, min(seq, par), max(seq, par) > min(seq, par)*11/10
}

// play makes calls and returns their total time. Times vary by a tenth.
func (w workload) play(l *learner, rng *rand.Rand, from, calls int) (total time.Duration) {
	for n := from; n < from+calls; n++ {
		mode, measured := l.choose(uint64(n))
		parallel := mode != inSequence
		wall, sum, longest := w.cost(parallel)
		noise := 0.95 + 0.1*rng.Float64()
		vary := func(d time.Duration) time.Duration { return time.Duration(float64(d) * noise) }
		if measured {
			l.learn(parallel, vary(wall), vary(sum), vary(longest))
		}
		total += wall
	}
	return total
}

func workloads() (all []workload) {
	for _, n := range []int{2, 8, 64} {
		for _, each := range []time.Duration{500, 2e3, 5e3, 20e3, 100e3, 1e6, 50e6} {
			for _, procs := range []int{1, 2, 1000} {
				all = append(all, workload{n, each, procs, 300 * time.Nanosecond})
			}
		}
	}
	return all
}

func (w workload) String() string { return fmt.Sprintf("%d x %v on %d", w.n, w.each, w.procs) }

// loss plays calls, after a few, and returns how much longer they took than in the better mode.
func (w workload) loss(calls int) float64 {
	var l learner
	l.reset(w.n)
	rng := rand.New(rand.NewPCG(1, uint64(w.start)))
	w.play(&l, rng, 0, 64)
	_, best, _ := w.best()
	return float64(w.play(&l, rng, 64, calls)) / float64(best*time.Duration(calls))
}

func TestTheRightModeCostsAlmostNothingToFind(t *testing.T) {
	for i, w := range workloads() {
		if raceEnabled && i%4 != 0 {
			continue
		}
		if ratio := w.loss(10_000); ratio > 1.05 {
			t.Errorf("%v: %.3f times the better mode", w, ratio)
		}
	}
}

// On a busy machine a goroutine waits for a processor for milliseconds. For calls of a microsecond,
// trials once cost as much as the calls themselves.
func TestTrialsAreCheapHoweverLateGoroutinesStart(t *testing.T) {
	for _, each := range []time.Duration{500, 2e3, 5e3} {
		if raceEnabled && each > 500 {
			continue // one goroutine: no race to detect
		}
		for _, late := range []time.Duration{50e3, 1e6, 4e6} {
			w := workload{2, each, 1, late}
			if ratio := w.loss(1_000_000); ratio > 1.035 {
				t.Errorf("%v, goroutines %v late: %.3f times the better mode", w, late, ratio)
			}
		}
	}
}

func TestAChangeIsFollowedWithin64Calls(t *testing.T) {
	for i, from := range workloads() {
		for j, to := range workloads() {
			if raceEnabled && (i+j)%8 != 0 {
				continue // one goroutine: no race to detect
			}
			was, _, clear1 := from.best()
			want, _, clear2 := to.best()
			if was == want || !clear1 || !clear2 {
				continue
			}
			var l learner
			l.reset(from.n)
			rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			calls := 500 + rng.IntN(3000)
			from.play(&l, rng, 0, calls)
			to.play(&l, rng, calls, 64)
			// Trials of the other mode continue; only the current mode matters.
			if l.parallel != want {
				t.Errorf("from %v to %v: the wrong mode after 64 calls", from, to)
			}
		}
	}
}

// A caller that runs branches cannot return early. So the caller runs branches only while calls are
// quick, and stops after a call that was not.
func TestTheCallerTakesPartInQuickCallsOnly(t *testing.T) {
	var l learner
	l.reset(8)
	rng := rand.New(rand.NewPCG(1, 1))
	if mode, _ := l.choose(0); mode != inParallel {
		t.Errorf("before anything is known: mode %d", mode)
	}
	quick, slow := workload{8, 5e3, 2, 300}, workload{8, 1e6, 1000, 300}
	quick.play(&l, rng, 0, 500)
	if mode, _ := l.choose(500); mode != joined {
		t.Errorf("calls of 25 µs: mode %d", mode)
	}
	wall, sum, longest := slow.cost(true)
	l.learn(true, wall, sum, longest)
	if mode, _ := l.choose(501); mode != inParallel {
		t.Errorf("after a call of a millisecond: mode %d", mode)
	}
	slow.play(&l, rng, 502, 500)
	if mode, _ := l.choose(1002); mode != inParallel {
		t.Errorf("calls of a millisecond: mode %d", mode)
	}
}
