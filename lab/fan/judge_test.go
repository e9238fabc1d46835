package fan

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
)

// timed is a run of a bout with one time for each round, in µs.
func timed(setup, kind, load, pattern string, repeat int, cache float64, us ...float64) results.Run {
	r := results.Run{
		Setup: setup, Load: load, Pattern: pattern, Repeat: repeat, Elapsed: 1,
		Params: map[string]any{"kind": kind, "cache_us": cache}, Extra: map[string]float64{"ns": 1000 * median(us)},
	}
	for i, x := range us {
		r.Extra[roundKey(i)] = 1000 * x
		r.Extra[freeKey(i)] = 2
	}
	return r
}

func verdicts(runs []results.Run) map[string]results.OldClaim {
	out := map[string]results.OldClaim{}
	for _, c := range (Classic{}).Judge(runs, 1) {
		out[c.ID+" "+c.Setup] = c
	}
	return out
}

func TestThePublishedRatiosAreTakenWithinARound(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		wobble := float64(n) / 10
		half, saving := lookupLoad(2, published[0]), lookupLoad(2, published[1])
		runs = append(runs,
			// The machine is three times slower in the second round, for all contestants.
			timed(Virtual, Virtual, half, Sequential, n, 5e4, 100e3, 300e3, 101e3), timed(Virtual, Virtual, half, Corrected, n, 5e4, 50e3, 150e3, 50e3),
			timed(Computing, Computing, saving, Sequential, n, 100, 600+wobble), timed(Computing, Computing, saving, Corrected, n, 100, 502),
			timed(OneProc, OneProc, saving, Sequential, n, 100, 600+wobble), timed(OneProc, OneProc, saving, Corrected, n, 100, 601))
		printed := timed(Virtual, Virtual, half, AsPrinted, n, 5e4, 50e3)
		printed.Extra["lost"] = .5
		runs = append(runs, printed)
	}
	got := verdicts(runs)
	for id, want := range map[string]results.Verdict{
		"F1 virtual time": results.Holds, "F1 sleeping": results.Inconclusive, "F2 virtual time": results.Inconclusive,
		"F2 computing, a processor free": results.Holds, "F2 computing, one processor": results.Fails,
	} {
		if got[id].Verdict != want {
			t.Errorf("%s: %+v, want %s", id, got[id], want)
		}
	}
	if c := got["F1 virtual time"]; c.Measured != 2 || !strings.Contains(c.Why, "loses 50 %") {
		t.Errorf("%+v", c)
	}
}

func TestARoundWithoutAFreeProcessorSaysNothingAboutOne(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		for pattern, us := range map[string][]float64{Sequential: {600, 600}, Corrected: {500, 640}} {
			r := timed(Computing, Computing, lookupLoad(2, published[1]), pattern, n, 100, us...)
			r.Extra[freeKey(1)] = 1
			runs = append(runs, r)
		}
	}
	if c := verdicts(runs)["F2 computing, a processor free"]; c.Verdict != results.Holds || c.Measured != 100 || !strings.Contains(c.Why, "in 50 % of the rounds") {
		t.Errorf("%+v", c)
	}
	for _, r := range runs {
		r.Extra[freeKey(0)] = 1.2
	}
	if c := verdicts(runs)["F2 computing, a processor free"]; c.Verdict != results.Inconclusive || c.Why != busy {
		t.Errorf("%+v", c)
	}
}

func TestAllocationsAreCounted(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		for pattern, allocs := range map[string]float64{Sequential: 5, Corrected: 9, Spillway: 5, InParallel: 6} {
			r := timed(allocSetup, OneProc, "n = 2", pattern, n, 0, 1)
			r.Extra["allocs"], r.Extra["bytes"] = allocs, 300*allocs
			runs = append(runs, r)
		}
	}
	got := verdicts(runs)
	if c := got["F3 n = 2"]; c.Verdict != results.Holds || c.Measured != 4 || !strings.Contains(c.Why, "spillway-parallel 6 (1800 bytes)") {
		t.Errorf("%+v", c)
	}
	for id, want := range map[string]results.Verdict{
		"F/fanout-2-allocs spillway, n = 2": results.Holds, "F/fanout-2-allocs spillway-parallel, n = 2": results.Fails,
		"F/fanout-2-bytes spillway, n = 2": results.Holds, "F/fanout-2-bytes spillway-parallel, n = 2": results.Fails,
	} {
		if got[id].Verdict != want {
			t.Errorf("%s: %+v", id, got[id])
		}
	}
}

func TestBreakEvenLiesBetweenTwoDurations(t *testing.T) {
	for name, c := range map[string]struct {
		curve []point
		at    float64
		side  int
	}{
		"between":         {[]point{{1, 4}, {10, 2}, {1000, .5}}, 100, 0},
		"never":           {[]point{{1, 4}, {1000, 1.01}}, 1000, 1},
		"always":          {[]point{{1, .9}, {1000, .5}}, 1, -1},
		"a tie is none":   {[]point{{1, 4}, {10, 1.01}, {1000, .99}}, 1000, 1},
		"after a tie":     {[]point{{1, 4}, {10, .99}, {1000, .5}}, 10, 0},
		"twice: for good": {[]point{{1, .9}, {10, 2}, {1000, .5}}, 100, 0},
	} {
		if at, side := breakEven(c.curve); at < c.at*.999 || at > c.at*1.001 || side != c.side {
			t.Errorf("%s: %v on side %d, want %v, %d", name, at, side, c.at, c.side)
		}
	}
}

// gridRuns are two cells of a grid: ours is as good as the better in one, and so
// many times slower in the other.
func gridRuns(slower float64) (runs []results.Run) {
	for n := range 3 {
		wobble := 1 + float64(n)/1000
		setup := gridSetup(OneProc, 2)
		add := func(load, pattern string, cache, us float64) {
			runs = append(runs, timed(setup, OneProc, load, pattern, n, cache, us*wobble, 5*us, us))
		}
		add("1 µs", Sequential, 1, 2)
		add("1 µs", Corrected, 1, 4)
		add("1 µs", Spillway, 1, 2)
		add("1000 µs", Sequential, 1000, 2000)
		add("1000 µs", Corrected, 1000, 1000)
		add("1000 µs", ErrGroup, 1000, 1100)
		add("1000 µs", Spillway, 1000, 1000*slower)
	}
	return runs
}

func TestTheGridIsHeldAgainstTheBetter(t *testing.T) {
	for slower, want := range map[float64][2]results.Verdict{
		1.02: {results.Holds, results.Holds}, 1.3: {results.Fails, results.Fails}, 1.105: {results.Fails, results.Fails}, 1.0: {results.Holds, results.Holds},
	} {
		got := verdicts(gridRuns(slower))
		mean, worst := got["F/fanout-1-mean computing, one processor, 2 cells"], got["F/fanout-1-worst computing, one processor, 2 cells"]
		if mean.Verdict != want[0] || worst.Verdict != want[1] {
			t.Errorf("%v times slower in one of two cells: %s (%s), worst %s (%s)", slower, mean.Verdict, mean.Why, worst.Verdict, worst.Why)
		}
		if slower == 1.3 && (!strings.Contains(worst.Why, "1000 µs, where corrected is the better") || worst.Measured < 1.29 || worst.Measured > 1.31) {
			t.Errorf("%+v", worst)
		}
		even := got["F4 computing, one processor, n = 2"]
		if even.Verdict != results.Fails || even.Measured < 20 || even.Measured > 50 {
			t.Errorf("break-even: %+v", even)
		}
	}
}

func TestOfManyCellsOneIsTheWorstByNoiseAlone(t *testing.T) {
	runs := gridRuns(1.3)
	for n := range 3 {
		twin := timed(gridSetup(OneProc, 2), OneProc, "1000 µs", Spillway, n, 1000, 2000, 10_000, 2000)
		twin.Twin = true
		runs = append(runs, twin)
	}
	if c := verdicts(runs)["F/fanout-1-worst computing, one processor, 2 cells"]; c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "too busy to decide") {
		t.Errorf("%+v", c)
	}
}

func TestWhereParallelNeverWinsSequentialIsTheRightDefault(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		for load, us := range map[string]float64{"1 µs": 1, "1000 µs": 1000} {
			runs = append(runs, timed(gridSetup(OneProc, 2), OneProc, load, Sequential, n, us, 2*us),
				timed(gridSetup(OneProc, 2), OneProc, load, Corrected, n, us, 2*us+2))
		}
	}
	if c := verdicts(runs)["F4 computing, one processor, n = 2"]; c.Verdict != results.Holds || !strings.Contains(c.Why, "won at no duration up to 1000 µs") {
		t.Errorf("%+v", c)
	}
}

func TestTheOtherPromises(t *testing.T) {
	plant := func(p99, extra, outage, cancelled, calls, goroutines, ns float64) []results.Run {
		var runs []results.Run
		one := func(setup, pattern string, n int, extra map[string]float64) {
			runs = append(runs, results.Run{Setup: setup, Load: "it", Pattern: pattern, Repeat: n, Elapsed: 1, Extra: extra})
		}
		for n := range 3 {
			one(hedgeSetup, NotHedged, n, map[string]float64{"p99": 1e9})
			one(hedgeSetup, Hedged, n, map[string]float64{"p99": p99, "extra": extra, "outage": outage, "cancelled": cancelled})
			one(changeSetup, Spillway, n, map[string]float64{"to_parallel": calls, "to_sequential": calls})
			one(nestSetup, Spillway, n, map[string]float64{roundKey(0): ns, "goroutines": goroutines})
			one(nestSetup, Corrected, n, map[string]float64{roundKey(0): 100, "goroutines": 1300})
		}
		return runs
	}
	for want, runs := range map[results.Verdict][]results.Run{
		results.Holds: plant(2e7, 1.9, 4, 0, 40, 64, 190), results.Fails: plant(5e8, 2.1, 6, 1, 65, 65, 210),
	} {
		got := verdicts(runs)
		if len(got) != 14 {
			t.Errorf("%d verdicts", len(got))
		}
		for id, c := range got {
			if c.Verdict != want && !strings.HasPrefix(id, "F1") && !strings.HasPrefix(id, "F2") && !strings.HasPrefix(id, "F3") {
				t.Errorf("%s: %s (%s), want %s", id, c.Verdict, c.Why, want)
			}
		}
	}
}

func TestWithoutSpillwayThereIsNoVerdict(t *testing.T) {
	for id, c := range verdicts([]results.Run{timed(gridSetup(OneProc, 2), OneProc, "1 µs", Conc, 0, 1, 2)}) {
		if c.Verdict != results.Inconclusive {
			t.Errorf("%s: %s, %s", id, c.Verdict, c.Why)
		}
	}
}
