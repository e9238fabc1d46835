package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
)

// Losses lists, the worst first, where a contestant was better than Spillway; nil if
// there was none.
func (s *session) Losses() *table {
	var all []*cell
	for _, c := range s.cells {
		if s.behind(c) > 1 && c.pattern != "spillway" {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *cell) int { return cmp.Compare(s.behind(b), s.behind(a)) })
	var lines []row
	for _, c := range all {
		lines = append(lines, row{Cells: []string{fmt.Sprintf("%s, %s, to %s", setupName(c.setup), loadName(c.load), c.pattern), ratio(s.behind(c))}})
	}
	if len(lines) == 0 {
		return nil
	}
	return &table{Header: []string{"where", "by"}, Groups: []rows{{Rows: lines}}}
}

// behind is how many times Spillway's time is the contestant's.
func (s *session) behind(c *cell) float64 { return c.stat(extra(s.Family.Behind)).median() }

// Grid compares Spillway with the better of the others by two sizes, in a table for each
// kind of work. The set-ups of a grid are called prefix, kind of work, row; their loads
// are the columns.
func (s *session) Grid() (out []table) {
	for _, g := range s.setups {
		name := strings.TrimPrefix(g.name, s.Family.Grid)
		cut := strings.LastIndex(name, ", ")
		if !s.inGrid(g) || cut < 0 {
			continue
		}
		i := slices.IndexFunc(out, func(t table) bool { return t.Header[0] == name[:cut] })
		if i < 0 {
			i = len(out)
			out = append(out, table{Header: []string{name[:cut]}, Groups: make([]rows, 1)})
		}
		for _, l := range g.loads {
			if !slices.Contains(out[i].Header[1:], l.name) {
				out[i].Header = append(out[i].Header, l.name)
			}
		}
		line := row{Cells: []string{name[cut+2:]}, Marks: []cellMark{{}}}
		for _, column := range out[i].Header[1:] {
			text, m := s.better(g, column)
			line.Cells, line.Marks = append(line.Cells, text), append(line.Marks, m)
		}
		out[i].Groups[0].Rows = append(out[i].Groups[0].Rows, line)
	}
	for _, t := range out { // a later row may have more columns
		for i := range t.Groups[0].Rows {
			line := &t.Groups[0].Rows[i]
			for len(line.Cells) < len(t.Header) {
				line.Cells, line.Marks = append(line.Cells, none), append(line.Marks, cellMark{})
			}
		}
	}
	return out
}

func (s *session) inGrid(g *setup) bool {
	return s.Family.Grid != "" && strings.HasPrefix(g.name, s.Family.Grid)
}

// better is the largest of Spillway's ratios to the others: that to the better.
func (s *session) better(g *setup, column string) (string, cellMark) {
	most, by := 0.0, ""
	for _, c := range g.cells {
		if x := s.behind(c); c.load == column && x > most && c.pattern != "spillway" {
			most, by = x, c.pattern
		}
	}
	if by == "" {
		return none, cellMark{}
	}
	level := 0
	for _, bound := range []float64{.95, 1.05, 1.1, 1.5} {
		if most > bound {
			level++
		}
	}
	return ratio(most), cellMark{fmt.Sprint("heat-", level), "the better is " + by}
}

// steps lists the parts of the difference between two contestants, each in the unit of
// the figure and in per cent of the sum. They are means: those of parts add up to that of
// the whole, medians need not.
func (s *session) steps(g *setup) []table {
	of := s.Family.Stacks
	c := g.loads[0].cell(of.Whole)
	if c == nil || len(of.Parts) == 0 {
		return nil
	}
	mean := func(p ledger.StackPart) (mean float64) {
		values := c.stat(extra(p.Key))
		for _, v := range values {
			mean += v / float64(len(values))
		}
		return mean
	}
	sum, steps := 0.0, of.Parts[of.Steps:]
	for _, p := range steps {
		sum += mean(p)
	}
	if sum == 0 {
		return nil
	}
	var lines []row
	for _, p := range steps {
		lines = append(lines, row{Cells: []string{p.Name, decimals(mean(p)), decimals(100 * mean(p) / sum)}})
	}
	lines = append(lines, row{Cells: []string{"all steps", decimals(sum), decimals(100)}})
	return []table{{Header: []string{"step by step", of.Axis, "% of all steps"}, Groups: []rows{{Rows: lines}}}}
}
