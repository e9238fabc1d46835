package report

import (
	"cmp"
	"slices"
)

// figureTables shows a family's own figures of a set-up, if nothing was sent in
// it: a row for each contestant, and a column for each load, or, where there
// is only one load, for each figure.
func (f family) figureTables(s *summary, g *setupGroup) []table {
	if slices.ContainsFunc(g.loads, func(l *loadGroup) bool { return l.offered() > 0 }) {
		return nil
	}
	var out []table
	one := table{Left: 1, Header: []string{g.loads[0].load}}
	for _, fig := range f.Figures {
		t := table{Left: 1, Header: []string{fig.Name}}
		measured := false
		for _, l := range g.loads {
			t.Header = append(t.Header, l.load)
		}
		for _, pattern := range g.patterns(s) {
			row := []string{pattern}
			for _, l := range g.loads {
				text := none
				if i := slices.IndexFunc(l.cells, func(c *cell) bool { return c.pattern == pattern }); i >= 0 {
					text = l.cells[i].extra[fig.Key].or(fig.Format)
				}
				measured = measured || text != none
				row = append(row, text)
			}
			t.Rows = append(t.Rows, row)
		}
		switch {
		case !measured:
		case len(g.loads) > 1:
			out = append(out, t)
		default:
			one.add(fig.Name, t)
		}
	}
	if len(one.Rows) > 0 {
		out = append(out, one)
	}
	if steps := f.steps(g); len(steps.Rows) > 0 {
		out = append(out, steps)
	}
	return out
}

// add appends the only column of figures of t.
func (one *table) add(name string, t table) {
	one.Header = append(one.Header, name)
	if one.Rows == nil {
		one.Rows = t.Rows
		return
	}
	for i, row := range t.Rows {
		one.Rows[i] = append(one.Rows[i], row[1])
	}
}

// offered is the most requests of any run.
func (l *loadGroup) offered() (most float64) {
	for _, c := range l.cells {
		for _, n := range c.offered {
			most = max(most, n)
		}
	}
	return most
}

// patterns are the contestants of a set-up in the order of the whole report.
func (g *setupGroup) patterns(s *summary) []string {
	return slices.DeleteFunc(slices.Clone(s.patterns), func(name string) bool {
		return !slices.ContainsFunc(g.loads, func(l *loadGroup) bool {
			return slices.ContainsFunc(l.cells, func(c *cell) bool { return c.pattern == name })
		})
	})
}

// losses lists, the worst first, where a contestant was better than Spillway.
func (f family) losses(s *summary) table {
	type loss struct {
		row []string
		by  float64
	}
	var all []loss
	for _, g := range s.setups {
		for _, l := range g.loads {
			for _, c := range l.cells {
				if by := c.extra[f.Behind].median(); by > 1 && c.pattern != "spillway" {
					all = append(all, loss{[]string{setupName(g.setup), loadName(l.load), c.pattern, ratio(by)}, by})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b loss) int { return cmp.Compare(b.by, a.by) })
	t := table{Left: 3, Header: []string{"set-up", "load", "to", "by"}}
	for _, l := range all {
		t.Rows = append(t.Rows, l.row)
	}
	return t
}
