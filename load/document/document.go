// Package document lays out results as one HTML file that needs no network: styles, drawings
// and a small script are inside of it, and it reads well without the script.
package document

import (
	"embed"
	"html/template"
	"strings"

	"github.com/spillway-go/spillway/load/chart"
)

//go:embed *.html *.css *.js
var files embed.FS

var page = Frame()

// Frame returns the templates that all pages share: head, which takes the title, and foot.
func Frame() *template.Template {
	style := template.Must(template.New("chart.css").Parse(chart.Style))
	return template.Must(style.ParseFS(files, "*"))
}

// Render executes one of the templates, and leaves out control characters.
func Render(templates *template.Template, name string, data any) (string, error) {
	var text strings.Builder
	err := templates.ExecuteTemplate(&text, name, data)
	return chart.Clean(text.String()), err
}

// Page is a small page. What is empty is not on it.
type Page struct {
	Over, Title string   // what made it, and what it says
	Lead        []string // paragraphs below the title
	Figures     []Figure
	Facts       []Fact
	Body        template.HTML // below the facts
	Foot        string
}

// Figure is a drawing with its caption.
type Figure struct {
	Caption string
	Chart   template.HTML
}

// Fact is a figure in words, and where it is from.
type Fact struct{ Name, Value, How string }

// HTML is the page as a file.
func (p Page) HTML() (string, error) { return Render(page, "page.html", p) }
