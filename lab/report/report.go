// Package report presents the results of an experiment: a summary for the terminal and
// one HTML file that needs no network. Both are made from the stored results and runs
// alone, so that they can be made again at any time.
//
// A session (session.go) is what both show: its facts (facts.go), its claims in words
// (verdicts.go), its figures (tables.go, compare.go) and drawings (pictures.go,
// lines.go). The template in page/ lays them out; terminal.go prints them.
package report

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Write puts results.json and report.html into dir, each atomically. Nothing
// is written when either cannot be made.
func Write(dir string, fam ledger.Family, res results.Results, runs []results.Run) error {
	res.Schema = cmp.Or(res.Schema, results.Schema)
	var page bytes.Buffer
	if err := HTML(&page, fam, res, runs); err != nil {
		return fmt.Errorf("the report cannot be made: %w", err)
	}
	if err := results.WriteResults(dir, res); err != nil {
		return err
	}
	return results.WriteFile(filepath.Join(dir, results.ReportFile), page.Bytes())
}

//go:embed page
var files embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"number": number, "sentence": sentence, "command": command, "class": class, "mark": mark, "support": support,
	"anchor": func(id string) string { return "claim-" + id },
	"style": func() (template.CSS, error) {
		text, err := files.ReadFile("page/style.css")
		return template.CSS(text), err
	},
	"script": func() (template.JS, error) {
		text, err := files.ReadFile("page/script.js")
		return template.JS(text), err
	},
}).ParseFS(files, "page/page.html"))

// HTML writes the report as one self-contained page: styles, drawings and a small
// script are inside, it loads nothing, and it is readable without the script. Histograms
// are drawn, not embedded, so that the page stays small.
func HTML(w io.Writer, fam ledger.Family, res results.Results, runs []results.Run) error {
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, newSession(fam, res, runs)); err != nil {
		return err
	}
	_, err := w.Write(bytes.Map(printable, page.Bytes()))
	return err
}
