package main

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

func TestCoarseTimesKeepCountsAndStayWithinAFifth(t *testing.T) {
	h := new(histogram.Histogram)
	for d := time.Duration(1); d < time.Hour; d = d*5/4 + 1 {
		h.Record(int64(d))
	}
	c := coarse(h)
	if c.Count() != h.Count() || c.Sum() > h.Sum() || c.Sum() < .8*h.Sum() {
		t.Errorf("%d times of %v in all became %d of %v", h.Count(), h.Sum(), c.Count(), c.Sum())
	}
}

func TestEachSceneHasANameOfItsOwn(t *testing.T) {
	all := names()
	if slices.Sort(all); len(slices.Compact(all)) != len(scenes) {
		t.Errorf("scenes %q", all)
	}
	sum := 0.
	for _, rt := range routes {
		sum += rt.weight
	}
	if sum != 100 {
		t.Errorf("the weights of the routes add up to %v", sum)
	}
}
