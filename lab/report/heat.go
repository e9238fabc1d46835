package report

import (
	"strconv"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// heats draws how long good answers took over time, of each contestant under the main load.
// They have one axis of latency, so that they can be compared.
func (s *session) heats(g *setup) (out []panel) {
	if s.detail <= noHeat {
		return nil
	}
	l, low, high := g.main(), len(results.Bounds), -1
	all := make([]heat, len(l.cells))
	for i, c := range l.cells {
		all[i] = heatOf(c.series(), 30)
		low, high = min(low, all[i].low), max(high, all[i].high)
	}
	for i, h := range all {
		if h.low <= h.high {
			name, load := l.cells[i].Pattern, loadName(l.name)
			out = append(out, panel{name, load, h.draw(name+", "+load, low, high).SVG(), h.table(name + ", " + load)})
		}
	}
	return out
}

// heatKeys are the colours, by the largest share of each.
func heatKeys() (out []key) {
	last := len(chart.HeatLevels) - 1
	for i, share := range chart.HeatLevels {
		name := pick(i == 0, "up to ", "") + percent(share)
		out = append(out, key{Name: pick(i == last, "more of the answers", name), Mark: chart.Swatch(chart.HeatClass(i))})
	}
	return out
}

// heat is how many good answers came in each part of a time line, by how long they took: a
// row for each of results.Bounds.
type heat struct {
	points    []results.Point
	from, to  float64 // seconds
	parts     [][]float64
	low, high int // the rows that are not empty: none if low is above high
}

// heatOf divides a time line into parts, at most that many. One that is very short has none.
func heatOf(points []results.Point, parts int) heat {
	h, n := heat{points: points, low: len(results.Bounds), high: -1}, len(points)
	if n < 10 {
		return h
	}
	h.from, h.to = points[0].At, points[n-1].At
	h.to += (h.to - h.from) / float64(n-1)
	h.parts = make([][]float64, min(parts, n))
	for i := range h.parts {
		h.parts[i] = make([]float64, len(results.Bounds))
		for _, p := range points[i*n/len(h.parts) : (i+1)*n/len(h.parts)] {
			for latency, answers := range p.Took {
				if answers > 0 {
					row := results.Bound(latency)
					h.parts[i][row] += float64(answers)
					h.low, h.high = min(h.low, row), max(h.high, row)
				}
			}
		}
	}
	return h
}

func sum(counts []float64) (all float64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// draw makes the map of these rows, with an empty one below and above them.
func (h heat) draw(name string, low, high int) chart.Heat {
	const aLot = 18 // rows
	low, high = max(low-1, 0), min(high+1, len(results.Bounds)-1)
	out := chart.Heat{Title: "Latency of good answers over time, " + name, Height: 220, Desc: h.words(),
		X: chart.Axis{Label: "seconds", Scale: chart.Scale{Min: h.from, Max: h.to}}}
	for _, counts := range h.parts {
		column, all := make([]float64, 0, high-low+1), max(sum(counts), 1)
		for _, n := range counts[low : high+1] {
			column = append(column, n/all)
		}
		out.Columns = append(out.Columns, column)
	}
	every := 2 // to name 1, 2 and 5 of each decade
	if high-low > aLot {
		every = 6
	}
	var ticks []chart.Tick
	for row := low; row <= high; row++ { // its bound is its upper edge
		if row%every == 0 {
			ticks = append(ticks, chart.Tick{At: float64(row - low + 1), Label: bound(row)})
		}
	}
	out.Y = chart.Axis{Label: "time to the answer, logarithmic", Ticks: func(chart.Scale) []chart.Tick { return ticks }}
	return out
}

// words are the smallest and the largest median of a part, and the slowest answer.
func (h heat) words() string {
	quickest, slowest := len(results.Bounds), -1
	for _, counts := range h.parts {
		all, seen := sum(counts), 0.0
		for row, n := range counts {
			if seen += n; all > 0 && 2*seen >= all {
				quickest, slowest = min(quickest, row), max(slowest, row)
				break
			}
		}
	}
	return "medians " + upTo(quickest) + " in the best moment, " + upTo(slowest) + " in the worst; the slowest answer " + upTo(h.high)
}

// upTo is the end of a row.
func upTo(row int) string {
	if row == len(results.Bounds)-1 {
		return "above " + bound(row-1)
	}
	return "up to " + bound(row)
}

// reach are both ends of a row.
func reach(row int) string {
	if row == 0 || row == len(results.Bounds)-1 {
		return upTo(row)
	}
	return bound(row-1) + " to " + bound(row)
}

func bound(row int) string { return micros(float64(results.Bounds[row])) }

// table has the shares of longer parts, the slowest row first as in the drawing.
func (h heat) table(name string) []Table {
	h = heatOf(h.points, 6)
	header, rows := []string{name + ", until second"}, []string{"good answers"}
	for i := range h.parts {
		until := h.from + (h.to-h.from)*float64(i+1)/float64(len(h.parts))
		header = append(header, strconv.FormatFloat(until, 'g', 3, 64))
	}
	for r := h.high; r >= h.low; r-- {
		rows = append(rows, reach(r))
	}
	return cross(header, rows, func(row, part int) string {
		all := sum(h.parts[part])
		if row == 0 {
			return number(all)
		}
		return some(percent)(h.parts[part][h.high+1-row] / max(all, 1))
	})
}
