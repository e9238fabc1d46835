// Package report presents the results of an experiment: a summary for the terminal and
// one HTML file that needs no network. Both are made from the stored results and runs
// alone, so that they can be made again at any time.
//
// A session (session.go) is what both show: its facts (facts.go), its claims in words
// (verdicts.go), its figures (tables.go) and drawings (pictures.go, lines.go). The
// template in page/ lays them out; terminal.go prints them.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"path/filepath"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

//go:embed page
var files embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"number": number, "sentence": sentence, "command": command, "kind": kind,
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
	var text strings.Builder
	err := pageTemplate.Execute(&text, newSession(fam, res, runs))
	return chart.Clean(text.String()), err
}
