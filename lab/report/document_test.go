package report

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/document"
)

func TestADocumentIsAPageOfItsOwn(t *testing.T) {
	doc := Document{
		Page:  document.Page{Over: "A simulation", Title: "Two & one", Lead: []string{"Kept & proven."}, Foot: "spillway/sim/v1"},
		Table: NewTable([]string{"policy", "good/s"}, [][]string{{"none", "1"}, {"<limiter>", "2"}}),
		Timelines: []Timeline{
			{"none", []results.Point{{At: 1, OK: 5, InFlight: 7}, {At: 2, OK: 1, InFlight: 9}}},
			{"<limiter>", []results.Point{{At: 1, OK: 5, InFlight: 3, Limit: 4}, {At: 2, OK: 5, InFlight: 4, Limit: 4}}},
			{"idle", []results.Point{{At: 1}, {At: 2}}},
		},
	}
	page, err := doc.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range loads {
		for _, m := range r.FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(m[3], "#") && m[3] != "data:," {
				t.Errorf("%s would load %q", m[0], m[3])
			}
		}
	}
	if n := strings.Count(page, `<svg class="chart lines"`); n != 3 { // goodput, and two that were not idle
		t.Errorf("%d drawings, want 3", n)
	}
	if strings.Contains(page, "<limiter>") {
		t.Error("its text is not escaped")
	}
	for _, want := range []string{"&lt;limiter&gt;", "Two &amp; one", "Kept &amp; proven.", "spillway/sim/v1"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestADocumentHasNothingThatIsEmpty(t *testing.T) {
	page, err := Document{Page: document.Page{Title: "Nothing was found"}}.HTML()
	if err != nil || strings.Contains(page, "<section") || strings.Contains(page, "<table") {
		t.Errorf("%v, %s", err, page)
	}
}

// A policy without a limit has no line for one: a line at 0 would say that nothing may run.
func TestWithoutALimitThereIsNoLineOfIt(t *testing.T) {
	points := []results.Point{{At: 1, InFlight: 7}, {At: 2, InFlight: 9}}
	if drawn := limitPanel("none", points); len(drawn) != 1 || strings.Contains(string(drawn[0].Drawing), "limit at most") {
		t.Errorf("%v", drawn)
	}
	points[0].Limit = 8
	if drawn := limitPanel("some", points); len(drawn) != 1 || !strings.Contains(string(drawn[0].Drawing), "limit at most 8") {
		t.Errorf("%v", drawn)
	}
}
