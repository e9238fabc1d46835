package service

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// even is a database whose queries all take the same time alone.
func even(slots int, work time.Duration) *Database {
	return NewDatabase(Work{Slots: slots, Min: work, Max: work}, 1)
}

// ask runs n queries at once and returns how long each took.
func ask(ctx context.Context, d *Database, n int) ([]time.Duration, []error) {
	took, errs := make([]time.Duration, n), make([]error, n)
	var all sync.WaitGroup
	start := time.Now()
	for i := range n {
		all.Go(func() {
			errs[i] = d.Ask(ctx)
			took[i] = time.Since(start)
		})
	}
	all.Wait()
	return took, errs
}

func near(a, b time.Duration) bool { return (a - b).Abs() < 10*time.Microsecond }

func TestUpToItsSlotsTheDatabaseRunsAtFullSpeed(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 40 * time.Millisecond, 10: 40 * time.Millisecond, 40: 320 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			d := even(10, 40*time.Millisecond)
			took, errs := ask(t.Context(), d, n)
			for i := range took {
				if errs[i] != nil || !near(took[i], want) {
					t.Fatalf("%d at once: one took %v (%v), want %v", n, took[i], errs[i], want)
				}
			}
		})
	}
}

func TestTheQueryOfACallerThatLeavesIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := even(10, 40*time.Millisecond)
		impatient, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
		defer cancel()
		var leaving sync.WaitGroup
		leaving.Go(func() {
			_, errs := ask(impatient, d, 30)
			for _, err := range errs {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
			}
		})
		// A quarter of the work at an eighth of the speed, the rest at full speed.
		took, _ := ask(t.Context(), d, 10)
		leaving.Wait()
		for _, got := range took {
			if !near(got, 110*time.Millisecond) {
				t.Fatalf("took %v, want 110ms", got)
			}
		}
	})
}

func TestASlowDatabaseSlowsTheQueriesThatRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := even(10, 40*time.Millisecond)
		time.AfterFunc(20*time.Millisecond, func() { d.Slow(5) })
		time.AfterFunc(70*time.Millisecond, func() { d.Slow(1) })
		took, _ := ask(t.Context(), d, 10) // half of the work, a quarter in 50 ms, a quarter
		for _, got := range took {
			if !near(got, 80*time.Millisecond) {
				t.Fatalf("took %v, want 80ms", got)
			}
		}
	})
}

// The twin gives every query its share event by event, without a heap or virtual time.
func TestTheDatabaseAgreesWithItsTwin(t *testing.T) {
	const slots, work = 3, 20 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 2))
	var arrivals []time.Duration
	at := time.Duration(0)
	for range 60 {
		at += time.Duration(random.ExpFloat64() * float64(5*time.Millisecond))
		arrivals = append(arrivals, at)
	}
	want := twin(arrivals, slots, work)
	synctest.Test(t, func(t *testing.T) {
		d := even(slots, work)
		got := make([]time.Duration, len(arrivals))
		start := time.Now()
		var all sync.WaitGroup
		for i, at := range arrivals {
			all.Go(func() {
				time.Sleep(at)
				_ = d.Ask(t.Context())
				got[i] = time.Since(start)
			})
		}
		all.Wait()
		for i := range got {
			if !near(got[i], want[i]) {
				t.Fatalf("query %d ended after %v, the twin's after %v", i, got[i], want[i])
			}
		}
	})
}

func twin(arrivals []time.Duration, slots int, work time.Duration) []time.Duration {
	left, ends := map[int]float64{}, make([]time.Duration, len(arrivals))
	now, next := 0.0, 0
	for next < len(arrivals) || len(left) > 0 {
		speed := math.Pow(min(1, float64(slots)/float64(max(len(left), 1))), 1.5)
		step, first := math.Inf(1), -1
		for i, l := range left {
			if l/speed < step {
				step, first = l/speed, i
			}
		}
		if next < len(arrivals) && float64(arrivals[next])-now < step {
			step, first = float64(arrivals[next])-now, -1
		}
		for i := range left {
			left[i] -= step * speed
		}
		now += step
		if first >= 0 {
			delete(left, first)
			ends[first] = time.Duration(now)
			continue
		}
		left[next] = float64(work)
		next++
	}
	return ends
}
