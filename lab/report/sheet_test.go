package report

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/report/chart"
)

func TestASheetIsOnePageThatLoadsNothing(t *testing.T) {
	page, err := Sheet{
		Over: "Spillway capacity", Title: "The knee is <b>262/s</b>", Lead: []string{"Kept & proven."},
		Figures: []Figure{{"Goodput", chart.Lines{Height: 200, Series: []chart.Series{{Points: []chart.XY{{X: 1, Y: 2}}}}}.SVG()}},
		Facts:   []Fact{{"concurrency", "20", "Little's law"}}, Made: "spillway capacity URL",
	}.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "&lt;b&gt;262/s", "Kept &amp; proven.", "concurrency 20", "spillway capacity URL", ".chart"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, not := range []string{"http://", "https://", "<b>262"} {
		if strings.Contains(page, not) {
			t.Errorf("%q is in the page", not)
		}
	}
}
