//go:build soak && !race

package main

import (
	"context"
	"runtime"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/fan"
)

// Passing means that a change of how long the work takes is noticed, both ways.
func TestSoakAChangeOfTheWorkIsNoticed(t *testing.T) {
	got, err := playChange(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"to_parallel", "to_sequential"} {
		soak.AtMost(t, way, got[way], mostCalls-1, "calls", "that many are made before it counts as not noticed")
	}
}

// Passing means that nested lookups with a budget of 5 start about as many goroutines.
func TestSoakABudgetBoundsTheGoroutinesOfNestedLookups(t *testing.T) {
	p := player{name: fan.Spillway, whole: 1, find: made(t, fan.Spillway, sources{Database: func(context.Context, query) (*users, error) {
		return &users{[]user{{ID: 1}}}, nil
	}}, fan.Table{Sources: 4, Levels: 3, Budget: 5})}
	_ = p.ready(0)
	p.run(t.Context(), 1)
	if err := p.done(); err != nil {
		t.Fatal(err)
	}
	soak.AtMost(t, "goroutines at once", p.goroutines[0], float64(5+runtime.GOMAXPROCS(0)+16), "",
		"some have returned their token and not ended yet: one on each processor, and those that were preempted there; without a bound there are 84")
}
