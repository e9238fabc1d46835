package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

func TestLoadsThatAreSizesAreATableAndPictures(t *testing.T) {
	var runs []results.Run
	for _, n := range []int{100, 0, 20} {
		run := results.Run{Setup: "sweep", Load: fmt.Sprintf("queue of %d", n), Pattern: "workerpool", Elapsed: 1, Offered: 100, Params: map[string]any{"size": n}}
		for kind, count := range map[string]uint64{"ok": 20 + uint64(n)/2, "rejected": 80 - uint64(n)/2} {
			h := results.Outcome{Kind: kind, Count: count}
			h.Latency = run.Of(kind).Latency
			h.Latency.Record(int64(1e6 * (1 + n)))
			run.Outcomes = append(run.Outcomes, h)
		}
		runs = append(runs, run)
	}
	fam := ledger.Family{Axes: map[string]string{"sweep": "queue places"}}
	text := strings.Join(strings.Fields(summedOf(t, fam, results.Results{}, runs, Options{Width: 120})), " ")
	want := "queue places throughput good/s refused share p99, good queue of 0 100 20 80 % 1 ms queue of 20 100 30 70 % 21 ms queue of 100 100 70 30 % 101 ms"
	if !strings.Contains(text, want) {
		t.Errorf("%q is missing in\n%s", want, text)
	}
	page := renderedOf(t, fam, results.Results{}, runs)
	for _, want := range []string{"Throughput against queue places, sweep", "Good/s against queue places, sweep", "P99, good against queue places, sweep", "workerpool at queue of 0: 20 (one run)", "<td>21 ms</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing on the page", want)
		}
	}
	sized := newSession(fam, results.Results{}, runs)
	for _, p := range sized.sizeCurves(sized.Setups[0]) {
		if n := strings.Count(string(p.Drawing), ">0</text>"); n != 2 {
			t.Errorf("%s: %d zeros: want one for each axis, for the size of 0 has a place, too", p.Title, n)
		}
	}
	for _, no := range []string{"multiples of the capacity", "What came back", "allocs/req"} {
		if strings.Contains(page, no) {
			t.Errorf("the page has %q", no)
		}
	}
}

func TestSizesWithoutAFigureAreNotDrawn(t *testing.T) {
	runs := []results.Run{{Setup: "sweep", Load: "10 clients", Pattern: "workerpool", Params: map[string]any{"size": 10}}, {Setup: "sweep", Load: "others", Pattern: "workerpool"}}
	page := renderedOf(t, ledger.Family{Axes: map[string]string{"sweep": "clients"}}, results.Results{}, runs)
	if strings.Contains(page, "against clients, sweep") {
		t.Error("one size is a curve")
	}
}
