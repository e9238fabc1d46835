package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	xsync "golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/limiter/semaphore"
)

func both(size int64) map[string]func() slots {
	return map[string]func() slots{
		"x/sync": func() slots { return xsync.NewWeighted(size) },
		"ours":   func() slots { return semaphore.NewWeighted(size) },
	}
}

// Callers of any weight come, give up and return slots in any portions. After each step the same
// callers have their slots, and the others the same errors.
func TestBothLiveTheSameLife(t *testing.T) {
	for seed := range uint64(200) {
		size := int64(seed % 9)
		lives := map[string][]string{}
		for name, newSlots := range both(size) {
			synctest.Test(t, func(t *testing.T) { lives[name] = life(t, newSlots(), size, seed) })
		}
		for i, want := range lives["x/sync"] {
			if got := lives["ours"][i]; got != want {
				t.Fatalf("seed %d, step %d:\n%s\nwant\n%s", seed, i, got, want)
			}
		}
	}
}

// life returns a line about all callers for each of 60 steps.
func life(t *testing.T, s slots, size int64, seed uint64) (lines []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	var held atomic.Int64
	var callers []*atomic.Value
	var cancels []context.CancelFunc
	for range 60 {
		tried := ""
		switch n := 1 + r.Int64N(size+2); r.IntN(6) {
		case 0, 1:
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.Int64N(int64(10*time.Second))))
			defer cancel()
			got := new(atomic.Value)
			got.Store("waits")
			callers, cancels = append(callers, got), append(cancels, cancel)
			go func() {
				if err := s.Acquire(ctx, n); err != nil {
					got.Store(err.Error())
					return
				}
				held.Add(n)
				got.Store("has " + fmt.Sprint(n))
			}()
		case 2:
			took := s.TryAcquire(n)
			if took {
				held.Add(n)
			}
			tried = fmt.Sprintf("try %d: %v", n, took)
		case 3, 4:
			n = min(n, held.Load())
			held.Add(-n)
			s.Release(n)
		case 5:
			if len(cancels) > 0 && r.IntN(2) == 0 {
				cancels[r.IntN(len(cancels))]()
			} else {
				time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
			}
		}
		synctest.Wait()
		line := fmt.Sprintf("%d held, %s", held.Load(), tried)
		for i, c := range callers {
			line += fmt.Sprintf("; %d: %v", i, c.Load())
		}
		lines = append(lines, line)
	}
	for _, cancel := range cancels {
		cancel()
	}
	synctest.Wait()
	s.Release(held.Load())
	if !s.TryAcquire(size) {
		t.Error("the slots are not all there")
	}
	return lines
}
