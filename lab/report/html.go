package report

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

//go:embed page
var pageFiles embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{"number": number, "anchor": anchor, "sentence": sentence}).ParseFS(pageFiles, "page/page.html"))

// anchor is the id of a claim's card.
func anchor(id string) string { return "claim-" + strings.ReplaceAll(id, "/", "-") }

// HTML writes the report as one self-contained page: styles, drawings and a small
// script are inside, it loads nothing, and it is readable without the script. Histograms are drawn, not embedded, so that the page stays small.
func HTML(w io.Writer, fam ledger.Family, res results.Results, runs []results.Run) error {
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return err
	}
	script, err := pageFiles.ReadFile("page/script.js")
	if err != nil {
		return err
	}
	p := newPage(fam, res, runs)
	p.Style, p.Script = template.CSS(style), template.JS(script)
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, p); err != nil {
		return err
	}
	_, err = w.Write(bytes.Map(printable, page.Bytes()))
	return err
}
