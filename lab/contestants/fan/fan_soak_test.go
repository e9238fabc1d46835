//go:build soak && !race

package main

import (
	"context"
	"runtime"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/fan"
)

// Passing means that the published lookup loses about half of the answers that come at
// the same moment, as chance has it.
func TestSoakThePublishedLookupLosesAnswers(t *testing.T) {
	for _, d := range fan.Demonstrations.Demos() {
		demo, err := d.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		for _, c := range demo.Counts {
			if c.Name == "lost at 50/50 ms, as-printed" {
				soak.AtLeast(t, c.Name, c.N, 100, "of 1000", "both are ready at once, and either is taken")
				soak.AtMost(t, c.Name, c.N, 900, "of 1000", "both are ready at once, and either is taken")
			}
		}
	}
}

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
