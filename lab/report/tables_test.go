package report

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

var pools = ledger.Family{Behind: "behind", Columns: []ledger.Column{{Key: "ns", Name: "time for each", Format: "nanos"}, {Key: "allocs", Name: "allocations"}, {Key: "worker_bytes", Name: "of an idle worker", Format: "size"}, {Key: "job_bytes", Name: "of a queued job", Format: "size"}}}

// A comparison in which nothing is sent: two loads, one load, and one that a
// contestant won.
func compared() (results.Results, []results.Run) {
	run := func(setup, load, pattern string, extra map[string]float64) results.Run {
		return results.Run{Setup: setup, Load: load, Pattern: pattern, Elapsed: 1, Extra: extra}
	}
	return results.Results{Experiment: "pools", Started: time.Unix(0, 0), Ended: time.Unix(1, 0)}, []results.Run{
		run("no-op jobs", "1→2", "spillway", map[string]float64{"ns": 40, "behind": 1}),
		run("no-op jobs", "1→2", "channel", map[string]float64{"ns": 50, "behind": .8}),
		run("no-op jobs", "64→2", "spillway", map[string]float64{"ns": 60, "behind": 1}),
		run("no-op jobs", "64→2", "channel", map[string]float64{"ns": 48, "behind": 1.25}),
		run("memory", "idle", "spillway", map[string]float64{"worker_bytes": 3000, "job_bytes": 32}),
		run("memory", "idle", "ants", map[string]float64{"worker_bytes": 2600}),
		{Setup: "memory", Load: "idle", Pattern: "pond", Killed: "above its cap"},
	}
}

func TestOwnFiguresAreOneTableASetUp(t *testing.T) {
	res, runs := compared()
	text := strings.Join(strings.Fields(summed(t, pools, res, runs, Options{Width: 120})), " ")
	for _, want := range []string{
		"LOSSES 1 comparison, medians where by repeats no-op jobs, 64→2, to channel 1.25x 1.25x – 1.25x",
		"measured time for each 1→2 spillway 40 ns channel 50 ns 64→2 spillway 60 ns channel 48 ns",
		"measured of an idle worker of a queued job idle spillway 2.93 KiB 32 B", "ants 2.54 KiB –",
		"pond was killed in 1 of 1 run",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "allocs/req") {
		t.Error("there are figures of requests, and nothing was sent")
	}
	page := rendered(t, pools, res, runs)
	for _, want := range []string{"Where Spillway loses", "<td>1.25x</td>", "<td>48 ns</td>", "<td>32 B</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing on the page", want)
		}
	}
	if strings.Contains(page, "No request was answered well") {
		t.Error("the page speaks of requests that were never sent")
	}
}

func TestAGridIsATableWithColours(t *testing.T) {
	run := func(setup, load, pattern string, behind float64) results.Run {
		return results.Run{Setup: setup, Load: load, Pattern: pattern, Elapsed: 1, Extra: map[string]float64{"behind": behind, "ns": 1}}
	}
	runs := []results.Run{
		run("grid, computing, one processor, n = 8", "1 µs", "spillway", 1), run("grid, computing, one processor, n = 8", "1 µs", "sequential", 1.02),
		run("grid, computing, one processor, n = 8", "1 µs", "conc", .3), run("grid, computing, one processor, n = 8", "20 µs", "sequential", 1.2),
		run("grid, computing, one processor, n = 2", "1 µs", "conc", .9), run("grid, virtual time, n = 2", "1 µs", "spillway", 1),
	}
	fan := ledger.Family{Behind: "behind", Grid: "grid, "}
	got := newSession(fan, results.Results{}, runs).Grid()
	want := []Table{
		{Header: []string{"computing, one processor", "1 µs", "20 µs"}, Rows: []row{
			{Cells: []string{"n = 2", "0.90x", none}, Marks: map[int]mark{1: {Class: "heat-0", Tip: "the better is conc"}, 2: {}}},
			{Cells: []string{"n = 8", "1.02x", "1.20x"}, Marks: map[int]mark{1: {Class: "heat-1", Tip: "the better is sequential"}, 2: {Class: "heat-3", Tip: "the better is sequential"}}},
		}},
		{Header: []string{"virtual time", "1 µs"}, Rows: []row{{Cells: []string{"n = 2", none}, Marks: map[int]mark{1: {}}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if page := rendered(t, fan, results.Results{}, runs); !strings.Contains(page, `<td class="heat-3" title="the better is sequential">1.20x</td>`) {
		t.Error("the page has no colour for a cell")
	}
	if text := summed(t, fan, results.Results{}, runs, Options{}); !strings.Contains(text, "computing, one processor") || strings.Contains(text, "GRID, COMPUTING") {
		t.Error(text)
	}
}

func TestTheStepsOfADifferenceAddUp(t *testing.T) {
	g7 := ledger.Family{Steps: ledger.Steps{Of: "µs of processor time for a request", By: "net/http", Parts: []ledger.Column{{Key: "byte_API_us", Name: "byte API"}, {Key: "rest_low_us", Name: "fasthttp"}}}}
	text := strings.Join(strings.Fields(summed(t, g7, results.Results{}, []results.Run{
		{Setup: "servers", Load: "keep-alive", Pattern: "net/http", Elapsed: 1, Extra: map[string]float64{"byte_API_us": 2, "rest_low_us": -.1}},
		{Setup: "servers", Load: "keep-alive", Pattern: "byte API", Killed: "above its cap"},
	}, Options{})), " ")
	for _, want := range []string{"byte API 2.00 105.26", "fasthttp -0.10 -5.26", "all steps 1.90 100.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}
