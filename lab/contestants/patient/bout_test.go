package main

import (
	"maps"
	"testing"
	"time"
)

// A phase in which no query ended had a limit that is no number, and the whole run was
// lost with it.
func TestAPhaseWithoutQueriesHasOnlyARate(t *testing.T) {
	m, got := new(measured), map[string]float64{}
	m.enter(got, "before", time.Second)
	if want := map[string]float64{"before": 0}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	m.add(time.Millisecond, 2)
	m.add(time.Millisecond, 4)
	if m.enter(got, "after", time.Second); got["after"] != 2 || got["limit_after"] != 3 || got["p99_after"] == 0 {
		t.Errorf("%v", got)
	}
}
