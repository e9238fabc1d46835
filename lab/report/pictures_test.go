package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

func TestACurveIsAPictureOfItsOwn(t *testing.T) {
	var b strings.Builder
	if err := Curve(&b, first(sweep(3)), second(sweep(3))); err != nil {
		t.Fatal(err)
	}
	svg := b.String()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
	}
	if len(svg) > 20_000 {
		t.Errorf("it has %d bytes", len(svg))
	}
	for _, want := range []string{`xmlns="http://www.w3.org/2000/svg"`, "prefers-color-scheme: dark", ">spillway</text>", ">semaphore-4x</text>", ">the knee</text>", ">capacity 250</text>", ">10x</text>", "<title>Good answers a second"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestASweepIsDrawnAgainstTheLoad(t *testing.T) {
	res, runs := sweep(3)
	page := rendered(t, ledger.Family{ID: "overload"}, res, runs)
	for _, want := range []string{
		"<title>Good/s, patient API</title>", "the knee", "<title>spillway at 10x: median 24", // about 240 of 250
		"; semaphore 1", ">offered, in multiples of the capacity</text>", ">0.9x</text>", "<figcaption>critical, good</figcaption>",
		"<summary>The same as a table</summary>", `<th scope="col">sent late by</th>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if bad := regexp.MustCompile(`="[^"]*(NaN|Inf)`).FindString(page); bad != "" {
		t.Errorf("a drawing contains %s", bad)
	}
}

func TestLoadsThatAreSizesAreATableAndPictures(t *testing.T) {
	var runs []results.Run
	for _, n := range []int{100, 0, 20} {
		run := results.Run{Setup: "sweep", Load: fmt.Sprintf("queue of %d", n), Pattern: "workerpool", Elapsed: 1, Offered: 100}
		for kind, count := range map[string]uint64{"ok": 20 + uint64(n)/2, "rejected": 80 - uint64(n)/2} {
			h := results.Outcome{Kind: kind, Count: count, Latency: run.Of(kind).Latency}
			h.Latency.Record(int64(1e6 * (1 + n)))
			run.Outcomes = append(run.Outcomes, h)
		}
		runs = append(runs, run)
	}
	fam := ledger.Family{Axes: map[string]string{"sweep": "queue places"}}
	text := strings.Join(strings.Fields(summed(t, fam, results.Results{}, runs, Options{Width: 120})), " ")
	want := "queue places throughput good/s refused share p99, good queue of 0 100 20 80 % 1 ms queue of 20 100 30 70 % 21 ms queue of 100 100 70 30 % 101 ms"
	if !strings.Contains(text, want) {
		t.Errorf("%q is missing in\n%s", want, text)
	}
	page := rendered(t, fam, results.Results{}, runs)
	for _, want := range []string{">queue places</text>", "workerpool at queue of 0: median 20 of 1 repeat", "<td>21 ms</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing on the page", want)
		}
	}
}
