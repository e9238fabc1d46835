package report

import (
	"bufio"
	"fmt"
	"html/template"
	"io"
	"math"
	"unicode/utf8"

	"github.com/spillway-go/spillway/load/chart"
)

// Table is rows of text under a header: a name, and figures. Text and the template "table"
// write it.
type Table struct {
	Header []string
	Strips string // what the drawing after the figures shows; empty: there is none
	Groups []rows
}

// rows are those of one load.
type rows struct {
	Name, Note string
	Rows       []row
}

type row struct {
	Cells  []string
	Marks  map[int]cellMark // of cells with a meaning
	Anchor string           // the claim that it is about
	Strip  template.HTML    // its figures, drawn
	Note   string           // beneath it
}

// cellMark colours a cell, and says more about it.
type cellMark struct{ Class, Tip string }

// NewTable is a table of these cells.
func NewTable(header []string, cells [][]string) Table {
	t := Table{Header: header, Groups: make([]rows, 1)}
	for _, line := range cells {
		t.Groups[0].Rows = append(t.Groups[0].Rows, row{Cells: line})
	}
	return t
}

// flat is a table without groups, or nothing if there are no rows.
func flat(lines []row, header ...string) []Table {
	if len(lines) == 0 {
		return nil
	}
	return []Table{{Header: header, Groups: []rows{{Rows: lines}}}}
}

// cross is a table with a row for each name, or nothing if there are none. The text is that
// of a cell, both counted from the first figure.
func cross(header, names []string, text func(row, column int) string) []Table {
	lines := make([]row, len(names))
	for i, name := range names {
		lines[i].Cells = []string{name}
		for j := range header[1:] {
			lines[i].Cells = append(lines[i].Cells, text(i, j))
		}
	}
	return flat(lines, header...)
}

// Text writes the table, however wide it is.
func (t Table) Text(w io.Writer) error {
	out := &terminal{bufio.NewWriter(w), Options{Width: math.MaxInt}}
	out.table(t, 0)
	return out.w.Flush()
}

// table writes aligned columns, indented. Those that do not fit into the width follow
// beneath, with the names repeated.
func (t *terminal) table(tab Table, indent int) {
	widths := make([]int, len(tab.Header))
	lines := []row{{Cells: tab.Header}}
	for _, g := range tab.Groups {
		lines = append(lines, g.Rows...)
	}
	for _, line := range lines {
		for i, s := range line.Cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(chart.Clean(s)))
		}
	}
	for from := 1; from < len(widths); {
		to, used := from, indent+widths[0]
		for to < len(widths) && (to == from || used+2+widths[to] <= t.Width) {
			used += 2 + widths[to]
			to++
		}
		write := func(cells []string, code string) {
			line := fmt.Sprintf("%*s%-*s", indent, "", widths[0], chart.Clean(cells[0]))
			for i := from; i < to; i++ {
				line += fmt.Sprintf("  %*s", widths[i], chart.Clean(cells[i]))
			}
			fmt.Fprintln(t.w, t.style(code, line))
		}
		t.gap()
		write(tab.Header, faint)
		for _, g := range tab.Groups {
			t.say(indent, span{bold, g.Name}, span{faint, g.Note})
			for _, line := range g.Rows {
				write(line.Cells, plain)
			}
		}
		from = to
	}
}
