// Package report presents the results of an experiment: a summary for the terminal and
// one HTML file that needs no network. Both are made from the stored results and runs
// alone, so that they can be made again at any time. A session of several experiments has
// one page, too (whole.go), and so has a result that no claim is about (document.go).
//
// A session (session.go) is what is shown of one experiment: its facts (facts.go), its
// claims in words with a strip for each answer (verdicts.go), and its figures (figures.go):
// one kind of table, which the terminal and the page print (table.go), and one kind of
// picture, a line for each contestant over the loads of a set-up (pictures.go).
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
	"sentence": sentence, "command": command, "kind": kind, "standing": standing, "again": again,
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
// script are inside, it loads nothing, and it is readable without the script.
func page(fam ledger.Family, res results.Results, runs []results.Run) (string, error) {
	s := newSession(fam, res, runs)
	return fitting("page.html", s, s)
}

// detail is how much a page shows.
type detail int

const (
	verdictsOnly detail = iota
	tables              // and all figures
	mainPicture         // and a picture of each set-up
	everything          // and one of each figure
)

// pageLimit is how many bytes a page has: it can be sent by mail.
const pageLimit = 400_000

// fitting makes a page of sessions with as much detail as there is room for.
func fitting(name string, data any, sessions ...*session) (text string, err error) {
	for d := everything; d >= verdictsOnly; d-- {
		for _, s := range sessions {
			s.detail = d
		}
		if text, err = document.Render(templates, name, data); err != nil || len(text) < pageLimit {
			break
		}
	}
	return text, err
}
