// Package report presents the results of an experiment: a summary for the terminal and
// one HTML file that needs no network. Both are made from the stored results and runs
// alone, so that they can be made again at any time. A session of several experiments has
// one page, too (whole.go), and so has a result that no claim is about (document.go); the
// curve of goodput against load is also a picture of its own (curve.go).
//
// A session (session.go) is what is shown of one experiment: its facts (facts.go), its
// claims in words (verdicts.go), what follows from them (advice.go), its figures
// (tables.go) and drawings (pictures.go, lines.go, heat.go). The templates in page/ lay them out;
// terminal.go prints them.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"path/filepath"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/document"
)

//go:embed page
var files embed.FS

var templates = template.Must(document.Frame().Funcs(template.FuncMap{
	"number": number, "sentence": sentence, "command": command, "kind": kind, "standing": standing,
}).ParseFS(files, "page/*"))

// Write puts results.json and report.html into dir, each atomically. Nothing
// is written when either cannot be made.
func Write(dir string, fam ledger.Family, res results.Results, runs []results.Run) error {
	text, err := page(fam, res, runs)
	if err != nil {
		return fmt.Errorf("the report cannot be made: %w", err)
	}
	if err := results.WriteResults(dir, res); err != nil {
		return err
	}
	return results.WriteFile(filepath.Join(dir, results.ReportFile), []byte(text))
}

// page is the report as one self-contained page: styles, drawings and a small
// script are inside, it loads nothing, and it is readable without the script. Histograms
// are drawn, not embedded, so that the page stays small.
func page(fam ledger.Family, res results.Results, runs []results.Run) (string, error) {
	s := newSession(fam, res, runs)
	return fitting(func(d detail) (string, error) {
		s.detail = d
		return render("page.html", s)
	})
}

func render(name string, data any) (string, error) { return document.Render(templates, name, data) }

// detail is how much a page shows, from the verdicts alone to everything.
type detail int

const (
	verdictsOnly detail = iota // and what is drawn of them, and tables
	mainLoads                  // charts of one load of each set-up
	noHeat                     // charts of every load
	noRawRuns                  // and maps of latency
	everything
)

// pageLimit is how many bytes a page has: it can be sent by mail.
const pageLimit = 400_000

// fitting makes a page with as much detail as there is room for.
func fitting(page func(detail) (string, error)) (text string, err error) {
	for d := everything; d >= verdictsOnly; d-- {
		if text, err = page(d); err != nil || len(text) < pageLimit {
			break
		}
	}
	return text, err
}
