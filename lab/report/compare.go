package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
)

// Losses lists, the worst first, where a contestant was better than Spillway.
func (s *session) Losses() []Table {
	worse := slices.DeleteFunc(slices.Clone(s.cells), func(c *cell) bool { return c.Pattern == "spillway" || !(s.behind(c).median() > 1) })
	slices.SortStableFunc(worse, func(a, b *cell) int { return cmp.Compare(s.behind(b).median(), s.behind(a).median()) })
	var lines []row
	for _, c := range worse {
		v := s.behind(c)
		lines = append(lines, row{Cells: []string{fmt.Sprintf("%s, %s, to %s", setupName(c.Setup), loadName(c.Load), c.Pattern), ratio(v.median()), ratio(slices.Min(v)) + " – " + ratio(slices.Max(v))}})
	}
	return tableOf(lines, "where", "by", "repeats")
}

// behind is how many times Spillway's time is the contestant's.
func (s *session) behind(c *cell) stat { return c.stat(extra(s.Family.Behind)) }

// Grid compares Spillway with the better of the others by two sizes, in a table for each
// kind of work. The set-ups of a grid are called prefix, kind of work, row; their loads
// are the columns.
func (s *session) Grid() (out []Table) {
	columns := map[string][]string{} // of each kind
	cut := func(g *setup) (kind, row string, ok bool) {
		name := strings.TrimPrefix(g.Name, s.Family.Grid)
		i := strings.LastIndex(name, ", ")
		return name[:max(i, 0)], name[min(i+2, len(name)):], s.inGrid(g) && i >= 0
	}
	for _, g := range s.Setups {
		for _, l := range g.loads {
			if kind, _, ok := cut(g); ok && !slices.Contains(columns[kind], l.name) {
				columns[kind] = append(columns[kind], l.name)
			}
		}
	}
	for _, g := range s.Setups {
		kind, name, ok := cut(g)
		if !ok {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Header[0] != kind {
			out = append(out, Table{Header: append([]string{kind}, columns[kind]...)})
		}
		line := row{Cells: []string{name}, Marks: map[int]mark{}}
		for i, column := range columns[kind] {
			text, m := s.better(g, column)
			line.Cells, line.Marks[i+1] = append(line.Cells, text), m
		}
		t := &out[len(out)-1]
		t.Rows = append(t.Rows, line)
	}
	return out
}

func (s *session) inGrid(g *setup) bool {
	return s.Family.Grid != "" && strings.HasPrefix(g.Name, s.Family.Grid)
}

// better is the largest of Spillway's ratios to the others: that to the better.
func (s *session) better(g *setup, column string) (string, mark) {
	most, by := 0.0, ""
	for _, c := range g.cells {
		if x := s.behind(c).median(); c.Load == column && x > most && c.Pattern != "spillway" {
			most, by = x, c.Pattern
		}
	}
	if by == "" {
		return none, mark{}
	}
	level, _ := slices.BinarySearch([]float64{.95, 1.05, 1.1, 1.5}, most)
	return ratio(most), mark{Class: fmt.Sprint("heat-", level), Tip: "the better is " + by}
}

// steps are the parts of the difference between two contestants, each in the unit of the figure
// and in per cent of the sum. They are means: those of parts add up to that of the whole,
// medians need not.
func (s *session) steps(g *setup) []Table {
	of, sum := s.Family.Steps, 0.0
	mean := func(k ledger.Column) (mean float64) {
		values := g.loads[0].cell(of.By).stat(extra(k.Key))
		for _, v := range values {
			mean += v / float64(len(values))
		}
		return mean
	}
	for _, k := range of.Parts {
		sum += mean(k)
	}
	if sum == 0 {
		return nil
	}
	line := func(name string, x float64) row {
		return row{Cells: []string{name, decimals(x), decimals(100 * x / sum)}}
	}
	var lines []row
	for _, k := range of.Parts {
		lines = append(lines, line(k.Name, mean(k)))
	}
	return tableOf(append(lines, line("all steps", sum)), "step by step", of.Of, "% of all steps")
}
