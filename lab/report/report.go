// Package report presents the results of an experiment: a summary for the terminal and
// one HTML file that needs no network. Both are made from the stored results and runs
// alone, so that they can be made again at any time.
//
// A session (session.go) is what both show: its claims in words (verdicts.go), its
// figures (tables.go, compare.go) and drawings (pictures.go, lines.go). The template in
// page/ lays them out; terminal.go prints them.
package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Write puts results.json and report.html into dir, each atomically. Nothing
// is written when either cannot be made.
func Write(dir string, fam ledger.Family, res results.Results, runs []results.Run) error {
	if res.Schema == "" {
		res.Schema = results.Schema
	}
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

// sheet is the tables of one set-up.
type sheet struct {
	Name   string
	Tables []table
}

// Sheets are the figures of every set-up.
func (s *session) Sheets() (out []sheet) {
	for _, g := range s.setups {
		out = append(out, sheet{setupName(g.name), s.tables(g)})
	}
	return out
}

// Failed lists the runs that have no measurement, and why.
func (s *session) Failed() (out []string) {
	for i := range s.runs {
		if r := &s.runs[i]; r.Failed != "" {
			out = append(out, title(r)+": "+results.Gist(r.Failed))
		}
	}
	return out
}

// Advice is the sources' recommendations, judged by our verdicts.
func (s *session) Advice() []ledger.Advice { return s.Family.Advise(s.Results.Claims) }

func support(v results.Verdict) string {
	switch v {
	case results.Holds:
		return "Our measurement supports this."
	case results.Fails:
		return "Our measurement does not support this."
	}
	return "Our measurement does not decide this."
}

// InShort describes each set-up's high load (or its last) in one sentence.
func (s *session) InShort() (out []string) {
	for _, g := range s.setups {
		l := g.loads[max(slices.IndexFunc(g.loads, func(l *load) bool { return l.name == "high" }), 0)]
		if l.name != "high" {
			l = g.loads[len(g.loads)-1]
		}
		var parts []string
		for _, c := range l.cells {
			if len(c.runs) == 0 || len(s.ownTables(g)) > 0 {
				continue
			}
			text := c.pattern + " " + c.stat(rate("ok")).or(number)
			if share := c.row(rates).Cells[len(rates)]; len(c.killed) > 0 {
				text += " until it was killed"
			} else if share != none {
				text += " (" + share + " refused)"
			}
			parts = append(parts, text)
		}
		if len(parts) > 0 {
			out = append(out, fmt.Sprintf("%s, at %s, good answers a second: %s.", sentence(setupName(g.name)), loadName(l.name), strings.Join(parts, ", ")))
		}
	}
	return out
}
