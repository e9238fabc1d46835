package experiment

import (
	"reflect"
	"strings"
	"testing"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

func TestEvidencePairsWhatWasMeasuredInOneRepeat(t *testing.T) {
	run := func(pattern string, repeat int, x float64) results.Run {
		return results.Run{Setup: "s", Load: "l", Pattern: pattern, Repeat: repeat, Elapsed: 1, Extra: map[string]float64{"x": x}}
	}
	key := func(pattern string) Key { return Key{Setup: "s", Load: "l", Pattern: pattern} }
	x := func(r results.Run) float64 { return r.Extra["x"] }
	killed, failed, twin := run("b", 2, 9), run("c", 0, 9), run("a", 0, 9)
	killed.Killed, failed.Failed, twin.Twin = "killed above the memory cap", "no route", true
	e := Evidence{Runs: []results.Run{run("a", 2, 3), run("b", 0, 10), run("a", 0, 1), run("a", 1, 2), killed, failed, twin, run("b", 1, 20)}, Seed: 7}

	if got := e.Pairs(key("a"), key("b"), x); got.Missing != "" || got.Seed != 7 || !reflect.DeepEqual(got.Pairs, []judge.Pair{{A: 1, B: 10}, {A: 2, B: 20}}) {
		t.Errorf("pairs %+v", got)
	}
	e.WithKilled = true
	if got := e.Values(key("b"), x).Values; !reflect.DeepEqual(got, []float64{10, 20, 9}) {
		t.Errorf("with killed runs: %v", got)
	}
	for pattern, want := range map[string]string{"c": "could not be measured: no route", "d": "was not run"} {
		if got := e.Missing(key("a"), key(pattern)); !strings.Contains(got, want) {
			t.Errorf("%s: %q", pattern, got)
		}
	}
	if Number(3) != 3 || Number(2.5) != 2.5 || Number("x") != 0 {
		t.Error("numbers from parameters")
	}
}
