package report

import (
	"fmt"
	"strconv"

	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// heats draws how long good answers took over time, of each contestant under the main load.
func (s *session) heats(g *setup) (out []panel) {
	if s.detail <= noHeat {
		return nil
	}
	l := g.main()
	for _, c := range l.cells {
		out = append(out, heatPanel(c.Pattern, loadName(l.name), c.series())...)
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

// heatPanel draws the latencies of a time line, unless it is too short or has none.
func heatPanel(name, note string, points []results.Point) []panel {
	const least, columns = 10, 30
	if len(points) < least {
		return nil
	}
	h := heatOf(points, columns)
	if h.high < h.low {
		return nil
	}
	return []panel{{name, note, h.draw(name + ", " + note).SVG(), h.table(points, name+", "+note)}}
}

// heat is how many good answers came in each part of a time line, by how long they took: a
// row for each of results.Bounds.
type heat struct {
	from, to  float64 // seconds
	parts     [][]uint64
	low, high int // the rows that are not empty
}

// heatOf divides a time line of at least two points into parts, at most that many.
func heatOf(points []results.Point, parts int) heat {
	n := len(points)
	parts = min(parts, n)
	from, last := points[0].At, points[n-1].At
	h := heat{from: from, to: last + (last-from)/float64(n-1), parts: make([][]uint64, parts), low: len(results.Bounds), high: -1}
	for i := range h.parts {
		h.parts[i] = make([]uint64, len(results.Bounds))
		for _, p := range points[i*n/parts : (i+1)*n/parts] {
			for latency, answers := range p.Took {
				if answers > 0 {
					row := results.Bound(latency)
					h.parts[i][row] += answers
					h.low, h.high = min(h.low, row), max(h.high, row)
				}
			}
		}
	}
	return h
}

func sum(counts []uint64) (all uint64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// draw makes the map, with an empty row below and above it.
func (h heat) draw(name string) chart.Heat {
	const aLot = 18 // rows
	low, high := max(h.low-1, 0), min(h.high+1, len(results.Bounds)-1)
	out := chart.Heat{Title: "Latency of good answers over time, " + name, Height: 220, Desc: h.words(),
		X: chart.Axis{Label: "seconds", Scale: chart.Scale{Min: h.from, Max: h.to}}}
	for _, counts := range h.parts {
		column, all := make([]float64, 0, high-low+1), float64(max(sum(counts), 1))
		for _, n := range counts[low : high+1] {
			column = append(column, float64(n)/all)
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
			ticks = append(ticks, chart.Tick{At: float64(row - low + 1), Label: micros(float64(results.Bounds[row]))})
		}
	}
	out.Y = chart.Axis{Label: "time to the answer, logarithmic", Ticks: func(chart.Scale) []chart.Tick { return ticks }}
	return out
}

// words are the largest and the smallest median of a part, and the slowest answer.
func (h heat) words() string {
	quickest, slowest := len(results.Bounds), -1
	for _, counts := range h.parts {
		all, seen := sum(counts), uint64(0)
		for row, n := range counts {
			if seen += n; all > 0 && 2*seen >= all {
				quickest, slowest = min(quickest, row), max(slowest, row)
				break
			}
		}
	}
	half := atMost(quickest) + pick(quickest == slowest, " throughout", " to "+atMost(slowest))
	return fmt.Sprintf("half of the answers of a moment took %s; the slowest of all %s", half, atMost(h.high))
}

// atMost is what the latencies of a row have in common.
func atMost(row int) string {
	if row == len(results.Bounds)-1 {
		return "longer than " + micros(float64(results.Bounds[row-1]))
	}
	return "at most " + micros(float64(results.Bounds[row]))
}

// table has the shares of longer parts, the slowest row first as in the drawing.
func (h heat) table(points []results.Point, name string) []table {
	const columns = 6
	h = heatOf(points, columns)
	header, answers := []string{name + ", until second"}, row{Cells: []string{"good answers"}}
	for i, counts := range h.parts {
		until := h.from + (h.to-h.from)*float64(i+1)/float64(len(h.parts))
		header = append(header, strconv.FormatFloat(until, 'g', 3, 64))
		answers.Cells = append(answers.Cells, number(float64(sum(counts))))
	}
	lines := []row{answers}
	for r := h.high; r >= h.low; r-- {
		line := row{Cells: []string{atMost(r)}}
		for _, counts := range h.parts {
			line.Cells = append(line.Cells, some(percent)(float64(counts[r])/float64(max(sum(counts), 1))))
		}
		lines = append(lines, line)
	}
	return flat(lines, header...)
}
