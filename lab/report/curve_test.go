package report

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
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
	for _, load := range loads {
		for _, m := range load.FindAllStringSubmatch(svg, -1) {
			if !strings.HasPrefix(m[3], "#") {
				t.Errorf("%s would load %q", m[0], m[3])
			}
		}
	}
}

func TestWithoutSeveralLoadsThereIsNoCurve(t *testing.T) {
	var b strings.Builder
	res, runs := fake(1)
	if err := Curve(&b, res, runs); err == nil || b.Len() > 0 {
		t.Errorf("error %v, %d bytes", err, b.Len())
	}
}

func TestASweepIsDrawnAgainstTheLoad(t *testing.T) {
	res, runs := sweep(3)
	page := renderedOf(t, ledger.Family{ID: "overload"}, res, runs)
	for _, want := range []string{
		"<h2>Against offered load</h2>", "the knee", "<title>spillway at 10x: median 24", // about 240 of 250
		"<title>Requests by outcome, spillway</title>", "offered 10x: 9", // about 9 % good
		"<h2>Limits over time</h2>", "<figcaption>spillway at 10x", "<h2>Was the load sent on time?</h2>",
		"<h2>Fairness by priority</h2>", "critical requests answered well",
		"<summary>The same as a table</summary>", `<th scope="col">0.5</th><th scope="col">0.9</th><th scope="col">2</th>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(page, "<figcaption>semaphore at 10x") {
		t.Error("a limit that nobody recorded was drawn")
	}
	if bad := regexp.MustCompile(`="[^"]*(NaN|Inf)`).FindString(page); bad != "" {
		t.Errorf("a drawing contains %s", bad)
	}
}
