package turns_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/turns"
)

// made is a clock that only work moves, and players that move it.
type made struct {
	now   time.Duration // 0: there is no clock
	order []string
}

func (m *made) player(name string, cost time.Duration) turns.Player {
	return turns.Player{Name: name, Block: func(n int) {
		m.order = append(m.order, name)
		m.now += time.Duration(n) * cost
	}}
}

func play(t *testing.T, m *made, rounds int, seed uint64, players ...turns.Player) [][]turns.Reading {
	t.Helper()
	got, err := turns.Play(t.Context(), turns.Config{Rounds: rounds, Seed: seed, Least: 3, Clock: func() time.Duration { return m.now }}, players)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEveryPlayerHasAReadingOfEveryRound(t *testing.T) {
	m := &made{now: 1}
	got := play(t, m, 5, 1, m.player("a", time.Microsecond), m.player("b", 3*time.Microsecond))
	for i, want := range []float64{1000, 3000} {
		if ns := turns.Each(got[i], turns.Nanos); len(ns) != 5 || slices.Min(ns) != want || slices.Max(ns) != want {
			t.Errorf("player %d: %v, want 5 of %v", i, ns, want)
		}
		for _, r := range got[i] {
			if r.N != 3 { // no time was asked for: the least that divides
				t.Errorf("a block of %d", r.N)
			}
		}
	}
}

func TestTheSeedAloneMakesTheOrder(t *testing.T) {
	order := func(seed uint64) string {
		m := &made{now: 1}
		play(t, m, 8, seed, m.player("a", 1), m.player("b", 1), m.player("c", 1))
		return strings.Join(m.order, "")
	}
	one := order(1)
	if one != order(1) || one == order(2) {
		t.Errorf("orders %s, %s; with another seed %s", one, order(1), order(2))
	}
	if one == strings.Repeat(one[:3], len(one)/3) {
		t.Errorf("every round has the order of the first: %s", one)
	}
}

func TestBlocksGrowUntilTheyTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		largest, began := 0, time.Now()
		slow := turns.Player{Name: "slow", Block: func(n int) {
			largest = max(largest, n)
			time.Sleep(time.Duration(n) * time.Microsecond)
		}}
		clock := func() time.Duration { return time.Since(began) + 1 }
		got, err := turns.Play(t.Context(), turns.Config{Rounds: 1, Time: 2 * time.Millisecond, Clock: clock}, []turns.Player{slow})
		if err != nil || largest < 1000 || largest > 4000 || got[0][0].Wall < time.Millisecond || got[0][0].Wall != got[0][0].Clock {
			t.Errorf("the largest block was %d, %+v, %v", largest, got, err)
		}
	})
}

var escaped []byte

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

func TestTheCollectorRunsInBlocksIfItIsAskedTo(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for _, on := range []bool{true, false} {
		within := uint32(0)
		p := turns.Player{Name: "a", Block: func(n int) {
			before := collections()
			for range n {
				escaped = make([]byte, 1<<20)
			}
			within += collections() - before
		}}
		got, err := turns.Play(t.Context(), turns.Config{Rounds: 2, Least: 100, Collector: on}, []turns.Player{p})
		if err != nil || (within > 0) != on || (got[0][0].Collector == 0) != on {
			t.Errorf("on: %v, %d collections within blocks, %+v, %v", on, within, got, err)
		}
	}
}

func TestAllocationsAreThoseOfTheBlockAndNoCollectionRunsInIt(t *testing.T) {
	within := uint32(0)
	p := turns.Player{Name: "a", Ready: func(int) error { escaped = make([]byte, 32<<20); return nil }, Block: func(n int) {
		before := collections()
		for range n {
			escaped = make([]byte, 1<<20)
		}
		within += collections() - before
	}}
	got, err := turns.Play(t.Context(), turns.Config{Rounds: 2, Least: 10}, []turns.Player{p})
	if err != nil || within != 0 {
		t.Fatalf("%d collections within blocks, %v", within, err)
	}
	for _, r := range got[0] {
		if r.Mallocs < 10 || r.Bytes < 10<<20 || r.Bytes > 30<<20 || r.Collector <= 0 || turns.AllNanos(r) != float64(r.Clock+r.Collector) {
			t.Errorf("%+v", r)
		}
		if first := got[0][0]; r.Collector/time.Duration(r.Bytes>>10) != first.Collector/time.Duration(first.Bytes>>10) {
			t.Errorf("garbage has two prices: %+v, %+v", first, r)
		}
	}
}

func TestAFailureNamesThePlayer(t *testing.T) {
	wrong := errors.New("a wrong answer")
	var calls []string
	p := turns.Player{Name: "echo",
		Ready: func(int) error { calls = append(calls, "ready"); return nil },
		Block: func(int) { calls = append(calls, "block") },
		Done:  func() error { calls = append(calls, "done"); return wrong },
	}
	_, err := turns.Play(t.Context(), turns.Config{Rounds: 1}, []turns.Player{p})
	if !errors.Is(err, wrong) || !strings.HasPrefix(err.Error(), "echo: ") || strings.Join(calls, " ") != "ready block done" {
		t.Errorf("%v after %v", err, calls)
	}
	p.Ready = func(int) error { return wrong }
	if _, err := turns.Play(t.Context(), turns.Config{Rounds: 1}, []turns.Player{p}); !errors.Is(err, wrong) || len(calls) != 3 {
		t.Errorf("%v after %v", err, calls)
	}
}

func TestTheEndOfTheContextEndsTheGame(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := turns.Player{Name: "a", Block: func(int) { cancel() }}
	if _, err := turns.Play(ctx, turns.Config{Rounds: 9}, []turns.Player{p}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestAClockThatStandsAtZeroIsMissing(t *testing.T) {
	_, err := turns.Play(t.Context(), turns.Config{Rounds: 1, Clock: func() time.Duration { return 0 }}, []turns.Player{{Name: "a", Block: func(int) {}}})
	if err == nil || !strings.Contains(err.Error(), "does not tell the processor time") {
		t.Error(err)
	}
}
