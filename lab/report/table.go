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
	Rows   []row
}

// row is a line of a table, or the name of the lines beneath it.
type row struct {
	Head  bool // it is such a name
	ID    string
	Cells []string
	Marks map[int]mark // of cells with a meaning
	Note  string       // beneath it; the page shows it
}

// mark is what the page shows of a cell beside its text.
type mark struct {
	Class, Tip, Link string
	Drawing          template.HTML
}

// NewTable is a table of these cells.
func NewTable(header []string, cells [][]string) Table {
	t := Table{Header: header}
	for _, line := range cells {
		t.Rows = append(t.Rows, row{Cells: line})
	}
	return t
}

// tableOf is a table, or nothing if there are no rows.
func tableOf(lines []row, header ...string) []Table {
	if len(lines) == 0 {
		return nil
	}
	return []Table{{header, lines}}
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
	for _, line := range append([]row{{Cells: tab.Header}}, tab.Rows...) {
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
		for _, line := range tab.Rows {
			if line.Head {
				t.say(indent, span{bold, line.Cells[0]})
			} else {
				write(line.Cells, plain)
			}
		}
		from = to
	}
}
