package report

import (
	"slices"
	"strings"
)

// heat is one table of a grid: how Spillway compares with the better of the
// others, by two sizes.
type heat struct {
	Title  string
	Header []string // of the columns
	Rows   []heatRow
}

type heatRow struct {
	Name  string
	Cells []heatCell
}

// heatCell is a ratio; the class colours it.
type heatCell struct{ Text, Class, Tip string }

// heats are the tables of a family's grid. The set-ups of a grid are called
// prefix, kind of work, row; their loads are the columns.
func (f family) heats(s *summary) []heat {
	var out []heat
	for _, g := range s.setups {
		if !f.inGrid(g) {
			continue
		}
		name := strings.TrimPrefix(g.setup, f.Grid)
		cut := strings.LastIndex(name, ", ")
		if cut < 0 {
			continue
		}
		kind, row := name[:cut], heatRow{Name: name[cut+2:]}
		i := slices.IndexFunc(out, func(h heat) bool { return h.Title == kind })
		if i < 0 {
			i = len(out)
			out = append(out, heat{Title: kind})
		}
		for _, l := range g.loads {
			if !slices.Contains(out[i].Header, l.load) {
				out[i].Header = append(out[i].Header, l.load)
			}
		}
		for _, column := range out[i].Header {
			cell := heatCell{Text: none}
			if n := slices.IndexFunc(g.loads, func(l *loadGroup) bool { return l.load == column }); n >= 0 {
				cell = f.heatOf(g.loads[n])
			}
			row.Cells = append(row.Cells, cell)
		}
		out[i].Rows = append(out[i].Rows, row)
	}
	for _, h := range out { // a later row may have more columns
		for i := range h.Rows {
			for len(h.Rows[i].Cells) < len(h.Header) {
				h.Rows[i].Cells = append(h.Rows[i].Cells, heatCell{Text: none})
			}
		}
		slices.SortFunc(h.Rows, func(a, b heatRow) int { return natural(a.Name, b.Name) })
	}
	return out
}

func (f family) inGrid(g *setupGroup) bool { return f.Grid != "" && strings.HasPrefix(g.setup, f.Grid) }

// heatOf is the largest of Spillway's ratios to the others: that to the better.
func (f family) heatOf(l *loadGroup) heatCell {
	most, by := 0.0, ""
	for _, c := range l.cells {
		if x := c.extra[f.Behind].median(); x > most && c.pattern != "spillway" {
			most, by = x, c.pattern
		}
	}
	if by == "" {
		return heatCell{Text: none}
	}
	class := "heat-4"
	for i, bound := range []float64{.95, 1.05, 1.1, 1.5} {
		if most <= bound {
			class = []string{"heat-0", "heat-1", "heat-2", "heat-3"}[i]
			break
		}
	}
	return heatCell{Text: ratio(most), Class: class, Tip: "the better is " + by}
}

// heat writes the tables for a terminal.
func (t *terminal) heat(heats []heat) {
	for _, h := range heats {
		t.section("grid, "+h.Title, span{faint, "Spillway's time/the better's, medians"})
		tab := table{Left: 1, Header: append([]string{""}, h.Header...)}
		for _, r := range h.Rows {
			row := []string{r.Name}
			for _, c := range r.Cells {
				row = append(row, c.Text)
			}
			tab.Rows = append(tab.Rows, row)
		}
		t.table(tab)
	}
}
