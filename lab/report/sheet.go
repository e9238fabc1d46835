package report

import "html/template"

// Sheet is a small page of its own, in the style of the reports: for a result that is no
// experiment.
type Sheet struct {
	Over, Title string   // what made it, and what it says
	Lead        []string // sentences
	Figures     []Figure
	Facts       []Fact
	Made        string // by which command
}

// Figure is a drawing with its caption.
type Figure struct {
	Caption string
	Chart   template.HTML
}

// Fact is a figure in words, and where it is from.
type Fact struct{ Name, Value, How string }

// HTML is the sheet as one page that loads nothing from anywhere.
func (s Sheet) HTML() (string, error) { return render("sheet.html", s) }
