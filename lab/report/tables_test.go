package report

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
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
	text := strings.Join(strings.Fields(summedOf(t, pools, res, runs, Options{Width: 120})), " ")
	for _, want := range []string{
		"LOSSES 1 comparison, medians where by repeats no-op jobs, 64→2, to channel 1.25x 1.25x – 1.25x",
		"time for each 1→2 64→2 medians over 1 repeat spillway 40 ns 60 ns channel 50 ns 48 ns",
		"idle of an idle worker of a queued job", "spillway 2.93 KiB 32 B", "ants 2.54 KiB –",
		"pond was killed in 1 of 1 run",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "allocs/req") {
		t.Error("there are figures of requests, and nothing was sent")
	}
	page := renderedOf(t, pools, res, runs)
	for _, want := range []string{"Where Spillway loses", "<td>1.25x</td>", "<td>48 ns</td>", "<td>32 B</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing on the page", want)
		}
	}
	if strings.Contains(page, "No request was answered well") {
		t.Error("the page speaks of requests that were never sent")
	}
}

// Headings of sections, by what was measured.
func TestNoHeadingStandsOverNothing(t *testing.T) {
	const back, latency, memory, every = "<h2>What came back</h2>", "<h2>Latency</h2>", "<h2>What it cost</h2>", "Every run, as it was made"
	took := &histogram.Histogram{}
	took.Record(1)
	nothing := results.Run{Setup: "no-op jobs", Load: "1→2", Pattern: "spillway", Elapsed: 1, Extra: map[string]float64{"ns": 40}}
	weighed := results.Run{Setup: "memory", Load: "idle", Pattern: "ants", Elapsed: 1, Extra: map[string]float64{"worker_bytes": 2600}}
	killed := results.Run{Setup: "memory", Load: "idle", Pattern: "pond", Killed: "above its cap"}
	untimed := results.Run{Setup: "units", Load: "all", Pattern: "serial", Elapsed: 1, Offered: 9, Outcomes: []results.Outcome{{Kind: "ok", Count: 9, Latency: &histogram.Histogram{}}}}
	timed := results.Run{Setup: "real", Load: "low", Pattern: "naive", Elapsed: 1, Offered: 1, Outcomes: []results.Outcome{{Kind: "ok", Count: 1, Latency: took}},
		Process: results.Process{Usage: usage.Usage{PeakRSS: 1 << 20}}}
	unanswered := results.Run{Setup: "real", Load: "low", Pattern: "naive", Elapsed: 1, Offered: 9, Outcomes: []results.Outcome{{Kind: "timeout", Count: 9}}}
	for name, test := range map[string]struct {
		runs []results.Run
		want []string
	}{
		"nothing sent":        {[]results.Run{nothing}, nil},
		"one killed":          {[]results.Run{weighed, killed}, []string{back, every}},
		"not timed":           {[]results.Run{untimed}, []string{back, every}},
		"timed":               {[]results.Run{timed, nothing}, []string{back, latency, memory, every}},
		"nothing was in time": {[]results.Run{unanswered}, []string{back, latency, every}},
	} {
		page := renderedOf(t, pools, results.Results{}, test.runs)
		for _, heading := range []string{back, latency, memory, every} {
			if got, want := strings.Contains(page, heading), slices.Contains(test.want, heading); got != want {
				t.Errorf("%s: %q is there: %v, want %v", name, heading, got, want)
			}
		}
	}
}

func TestWithoutALossNothingIsSaidOfOne(t *testing.T) {
	res, runs := compared()
	runs = append(runs[:2:2], runs[4:]...)
	if text := summedOf(t, pools, res, runs, Options{}); strings.Contains(text, "LOSSES") {
		t.Error(text)
	}
	if strings.Contains(renderedOf(t, pools, res, runs), "Where Spillway loses") {
		t.Error("on the page")
	}
}

func TestNumbersInNamesCountAsNumbers(t *testing.T) {
	want := []string{"", "1→2", "1→100", "1→1000", "2→2", "64→2", "1000→2", "a", "fixed 2", "fixed 32", "fixed 128"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, natural)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestAGridIsAHeatMap(t *testing.T) {
	run := func(setup, load, pattern string, behind float64) results.Run {
		return results.Run{Setup: setup, Load: load, Pattern: pattern, Elapsed: 1, Extra: map[string]float64{"behind": behind, "ns": 1}}
	}
	runs := []results.Run{
		run("grid, computing, one processor, n = 8", "1 µs", "spillway", 1), run("grid, computing, one processor, n = 8", "1 µs", "sequential", 1.02),
		run("grid, computing, one processor, n = 8", "1 µs", "conc", .3), run("grid, computing, one processor, n = 8", "20 µs", "sequential", 1.2),
		run("grid, computing, one processor, n = 2", "1 µs", "conc", .9), run("grid, virtual time, n = 2", "1 µs", "spillway", 1),
	}
	fan := ledger.Family{Behind: "behind", Grid: "grid, "}
	res := results.Results{}
	got := newSession(fan, res, runs).Grid()
	want := []Table{
		{Header: []string{"computing, one processor", "1 µs", "20 µs"}, Groups: []rows{{Rows: []row{
			{Cells: []string{"n = 2", "0.90x", none}, Marks: map[int]cellMark{1: {"heat-0", "the better is conc"}}},
			{Cells: []string{"n = 8", "1.02x", "1.20x"}, Marks: map[int]cellMark{1: {"heat-1", "the better is sequential"}, 2: {"heat-3", "the better is sequential"}}},
		}}}},
		{Header: []string{"virtual time", "1 µs"}, Groups: []rows{{Rows: []row{{Cells: []string{"n = 2", none}, Marks: map[int]cellMark{1: {}}}}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if page := renderedOf(t, fan, res, runs); !strings.Contains(page, `<td class="heat-3" title="the better is sequential">1.20x</td>`) {
		t.Error("the page has no colour for a cell")
	}
	if text := summedOf(t, fan, res, runs, Options{}); !strings.Contains(text, "computing, one processor") || strings.Contains(text, "GRID, COMPUTING") {
		t.Error(text)
	}
}

func TestFiguresMadeOfPartsAreStacked(t *testing.T) {
	run := func(setup, pattern string, extra map[string]float64) results.Run {
		return results.Run{Setup: setup, Load: "keep-alive", Pattern: pattern, Elapsed: 1, Extra: extra}
	}
	g7 := ledger.Family{Columns: []ledger.Column{{Key: "cpu_us", Name: "processor time", Format: "micros"}}, Stacks: ledger.Stacks{
		Axis: "µs of processor time for a request", Total: ledger.Column{Key: "cpu_us", Format: "micros"}, Note: ledger.Column{Key: "share", Name: "% of the lead", Format: "decimals"}, Whole: "net/http", Steps: 2,
		Parts: []ledger.StackPart{{Key: "floor_us", Name: "reads and writes alone", Class: "s0"}, {Key: "above_us", Name: "the server's own", Class: "s1"}, {Key: "byte_API_us", Name: "byte API", Class: "s3"}, {Key: "rest_low_us", Name: "fasthttp", Class: "error"}},
	}}
	res := results.Results{Started: time.Unix(0, 0), Ended: time.Unix(1, 0)}
	runs := []results.Run{
		run("servers", "net/http", map[string]float64{"cpu_us": 14.7, "floor_us": 8.5, "above_us": .7, "byte_API_us": 2, "rest_low_us": -.1}),
		run("each", "byte API", map[string]float64{"cpu_us": 12.7, "floor_us": 8.5, "above_us": 4.2, "byte_API_us": 2, "share": 36}),
		{Setup: "each", Load: "keep-alive", Pattern: "pooled state", Killed: "above its cap"},
	}
	page := renderedOf(t, g7, res, runs)
	for _, want := range []string{
		"What it is made of", `<rect class="fill s3" x="2" y="1" width="24" height="12"/></svg> byte API`, "net/http: byte API 2 µs", "14.7 µs",
		"byte API: byte API 2 µs", "12.7 µs, 36.00 % of the lead",
		"step by step", "105.26", "100.00", // of what is left of 2 without .1
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing on the page", want)
		}
	}
	if strings.Contains(page, "fasthttp -100 ns") || strings.Contains(page, "fasthttp −100 ns") {
		t.Error("a part below 0 was drawn")
	}
	if strings.Contains(renderedOf(t, pools, res, runs), "What it is made of") {
		t.Error("a family without parts has bars of them")
	}
}
