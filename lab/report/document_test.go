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
	if n := strings.Count(page, `<svg class="chart lines named"`); n != 3 { // goodput, and two that were not idle
		t.Errorf("%d drawings, want 3", n)
	}
	// A policy without a limit has no line for one: a line at 0 would say that nothing may run.
	if n := strings.Count(page, "limit at most"); n != 1 || !strings.Contains(page, "limit at most 4") {
		t.Errorf("%d lines of a limit, want one", n)
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
