package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/load/chart"
)

// worst is how many losses there is room for at first sight.
const worst = 20

// Losses lists, the worst first, where a contestant was better than Spillway: the worst in a
// table, and the others, if there are any, in another one.
func (s *session) Losses() (out []Table) {
	worse := slices.DeleteFunc(slices.Clone(s.cells), func(c *cell) bool { return c.Pattern == "spillway" || !(s.behind(c) > 1) })
	slices.SortStableFunc(worse, func(a, b *cell) int { return cmp.Compare(s.behind(b), s.behind(a)) })
	of, all := extra(s.Family.Behind), stat{1}
	for _, c := range worse {
		all = append(all, c.stat(of)...)
	}
	var lines []row
	for _, c := range worse {
		v := c.stat(of)
		lines = append(lines, row{Cells: []string{fmt.Sprintf("%s, %s, to %s", setupName(c.Setup), loadName(c.Load), c.Pattern), ratio(v.median()), between(v)},
			Strip: chart.Strip(chart.LogAround(all...), 1, chart.DotRow{Values: v, Median: v.median(), Tip: v.spread(ratio)})})
	}
	first := min(worst, len(lines))
	for _, part := range [][]row{lines[:first], lines[first:]} {
		out = append(out, flat(part, "where", "by", "repeats")...)
	}
	for i := range out {
		out[i].Strips = "each repeat; the line is 1"
	}
	return out
}

// between is from where to where the repeats reach.
func between(s stat) string { return ratio(slices.Min(s)) + " – " + ratio(slices.Max(s)) }

// behind is how many times Spillway's time is the contestant's.
func (s *session) behind(c *cell) float64 { return c.stat(extra(s.Family.Behind)).median() }

// Grid compares Spillway with the better of the others by two sizes, in a table for each
// kind of work. The set-ups of a grid are called prefix, kind of work, row; their loads
// are the columns.
func (s *session) Grid() (out []Table) {
	for _, g := range s.Setups {
		name := strings.TrimPrefix(g.Name, s.Family.Grid)
		cut := strings.LastIndex(name, ", ")
		if !s.inGrid(g) || cut < 0 {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Header[0] != name[:cut] {
			out = append(out, Table{Header: []string{name[:cut]}, Groups: make([]rows, 1)})
		}
		t := &out[len(out)-1]
		for _, l := range g.loads {
			if !slices.Contains(t.Header[1:], l.name) {
				t.Header = append(t.Header, l.name)
			}
		}
		line := row{Cells: []string{name[cut+2:]}, Marks: map[int]cellMark{}}
		for i, column := range t.Header[1:] {
			text, m := s.better(g, column)
			line.Cells, line.Marks[i+1] = append(line.Cells, text), m
		}
		t.Groups[0].Rows = append(t.Groups[0].Rows, line)
	}
	for _, t := range out {
		for i := range t.Groups[0].Rows { // the first ones do not have the loads that only later ones have
			line := &t.Groups[0].Rows[i]
			line.Cells = append(line.Cells, slices.Repeat([]string{none}, len(t.Header)-len(line.Cells))...)
		}
	}
	return out
}

func (s *session) inGrid(g *setup) bool {
	return s.Family.Grid != "" && strings.HasPrefix(g.Name, s.Family.Grid)
}

// better is the largest of Spillway's ratios to the others: that to the better.
func (s *session) better(g *setup, column string) (string, cellMark) {
	most, by := 0.0, ""
	for _, c := range g.cells {
		if x := s.behind(c); c.Load == column && x > most && c.Pattern != "spillway" {
			most, by = x, c.Pattern
		}
	}
	if by == "" {
		return none, cellMark{}
	}
	level, _ := slices.BinarySearch([]float64{.95, 1.05, 1.1, 1.5}, most)
	return ratio(most), cellMark{fmt.Sprint("heat-", level), "the better is " + by}
}

// steps lists the parts of the difference between two contestants, each in the unit of
// the figure and in per cent of the sum. They are means: those of parts add up to that of
// the whole, medians need not.
func (s *session) steps(g *setup) []Table {
	of := s.Family.Stacks
	sum, means, steps := 0.0, stat{}, of.Parts[of.Steps:]
	for i, p := range steps {
		values := g.loads[0].cell(of.Whole).stat(extra(p.Key))
		means = append(means, 0)
		for _, v := range values {
			means[i] += v / float64(len(values))
		}
		sum += means[i]
	}
	if sum == 0 {
		return nil
	}
	var names []string
	for _, p := range steps {
		names = append(names, p.Name)
	}
	means = append(means, sum)
	return cross([]string{"step by step", of.Axis, "% of all steps"}, append(names, "all steps"), func(i, j int) string {
		return decimals([]float64{means[i], 100 * means[i] / sum}[j])
	})
}
