package report

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Twelve seconds in which answers take 20 ms, then 50 ms, and at last none come.
func gettingSlower() (points []results.Point) {
	for i := range 12 {
		p := results.Point{At: float64(i)}
		switch {
		case i < 4:
			p.Took = map[int64]uint64{20_000: 9, 30_000: 1}
		case i < 10:
			p.Took = map[int64]uint64{50_000: 3, 70_000: 1}
		}
		points = append(points, p)
	}
	return points
}

func TestAHeatMapHasTheSharesOfEachMoment(t *testing.T) {
	h := heatOf(gettingSlower(), 6)
	drawn := h.draw("naive", h.low, h.high)
	first, then := []float64{0, .9, .1, 0, 0, 0}, []float64{0, 0, 0, .75, .25, 0} // up to 15, 20, 30, 50, 70 and 100 ms
	if want := [][]float64{first, first, then, then, then, make([]float64, 6)}; !reflect.DeepEqual(drawn.Columns, want) {
		t.Errorf("%v, want %v", drawn.Columns, want)
	}
	if x := drawn.X.Scale; x.Min != 0 || x.Max != 12 {
		t.Errorf("from %v to %v s", x.Min, x.Max)
	}
	var ticks []string
	for _, tick := range drawn.Y.Ticks(drawn.Y.Scale) {
		ticks = append(ticks, tick.Label)
	}
	if got := strings.Join(ticks, " "); got != "20 ms 50 ms 100 ms" {
		t.Errorf("the axis says %s", got)
	}
	if want := "medians up to 20 ms in the best moment, up to 50 ms in the worst; the slowest answer up to 70 ms"; drawn.Desc != want {
		t.Errorf("it says %q", drawn.Desc)
	}
}

func TestTheTableOfAHeatMapHasTheSameShares(t *testing.T) {
	got := heatOf(gettingSlower(), 30).table("naive, high load")
	want := flat([]row{
		{Cells: []string{"good answers", "20", "20", "8", "8", "8", "0"}},
		{Cells: []string{"50 ms to 70 ms", none, none, "25 %", "25 %", "25 %", none}},
		{Cells: []string{"30 ms to 50 ms", none, none, "75 %", "75 %", "75 %", none}},
		{Cells: []string{"20 ms to 30 ms", "10 %", "10 %", none, none, none, none}},
		{Cells: []string{"15 ms to 20 ms", "90 %", "90 %", none, none, none, none}},
	}, "naive, high load, until second", "2", "4", "6", "8", "10", "12")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestTheOutermostLatenciesAreDrawn(t *testing.T) {
	points := make([]results.Point, 10)
	for i := range points {
		points[i] = results.Point{At: float64(i), Took: map[int64]uint64{-3: 1, 1 << 62: 2, 500: 0}}
	}
	h := heatOf(points, 30)
	drawn := h.draw("odd", h.low, h.high)
	if n := len(drawn.Columns[0]); n != len(results.Bounds) || drawn.Columns[0][0] != 1./3 || drawn.Columns[9][n-1] != 2./3 {
		t.Errorf("%v", drawn.Columns)
	}
	if want := "medians above 70 s in the best moment, above 70 s in the worst; the slowest answer above 70 s"; drawn.Desc != want {
		t.Errorf("it says %q", drawn.Desc)
	}
}

func TestMapsOfOneLoadHaveOneAxis(t *testing.T) {
	var runs []results.Run
	for pattern, latency := range map[string]int64{"quick": 1000, "slow": 500_000, "silent": 0} {
		run := results.Run{Setup: "real", Load: "high", Pattern: pattern, Elapsed: 20, Offered: 1, Series: make([]results.Point, 12)}
		for i := range run.Series {
			run.Series[i] = results.Point{At: float64(i), Took: map[int64]uint64{latency: uint64(min(latency, 1))}}
		}
		runs = append(runs, run)
	}
	s := newSession(ledger.Family{}, results.Results{}, runs)
	panels := s.heats(s.Setups[0])
	if len(panels) != 2 {
		t.Fatalf("%d maps, want two: nothing is known of the third", len(panels))
	}
	for _, p := range panels {
		for _, tick := range []string{">1 ms<", ">100 ms<"} {
			if !strings.Contains(string(p.Drawing), tick) {
				t.Errorf("%s is not on the axis of %s", tick, p.Title)
			}
		}
	}
}

func TestLatenciesOverTimeAreDrawnWhereTheyWereRecorded(t *testing.T) {
	const heading, drawing = "<h2>Latency, over time</h2>", `<svg class="chart heat"`
	res, runs := sweep(2)
	page := renderedOf(t, ledger.Family{}, res, runs)
	for _, want := range []string{
		heading, "<title>Latency of good answers over time, spillway, 10x</title>", `<path class="fill level`, "</svg> more of the answers</li>",
		`<th scope="col">spillway, 10x, until second</th>`, `<th scope="row">100 ms to 150 ms</th>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(page, drawing); n != 2 { // the others answer nothing in time
		t.Errorf("%d maps, want those of spillway and of semaphore", n)
	}
	for i := range runs {
		for j := range runs[i].Series {
			runs[i].Series[j].Took = nil // as runs once were
		}
	}
	if old := renderedOf(t, ledger.Family{}, res, runs); strings.Contains(old, heading) || strings.Contains(old, drawing) || !strings.Contains(old, "<h2>Limits over time</h2>") {
		t.Error("runs without latencies over time are drawn with them, or not at all")
	}
}

func TestMapsOfLatencyGoBeforeOtherDrawings(t *testing.T) {
	res, runs := sweep(1)
	s := newSession(ledger.Family{}, res, runs)
	for d, want := range map[detail]bool{everything: true, noRawRuns: true, noHeat: false, mainLoads: false} {
		heat, limits := false, false
		s.detail = d
		for _, p := range s.Pictures() {
			heat, limits = heat || p.ID == "heat", limits || p.ID == "limits"
		}
		if heat != want || !limits {
			t.Errorf("with detail %d there are maps: %v, limits: %v", d, heat, limits)
		}
	}
}
