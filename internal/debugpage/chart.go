package debugpage

import (
	"fmt"
	"math"
	"strings"
)

// line is a series in a chart, the latest value last. A missing value is NaN.
type line struct {
	class  string // its colour, and whether it is filled
	name   string
	values []float64
}

// The units of a chart's viewBox. The picture is stretched, its strokes are not.
const (
	chartWidth  = 2 * (kept - 1)
	chartHeight = 50
)

// chart draws lines over the last two minutes. The text beside the chart is HTML, so that it scales
// with the reader's text size. The top of the scale is at least least.
func (m *markup) chart(title string, lowest float64, write func(float64) string, lines ...line) {
	top, latest := 0.0, make([]string, len(lines))
	for i, l := range lines {
		for _, v := range l.values {
			if v > top { // false for NaN
				top = v
			}
		}
		latest[i] = l.name + " " + write(l.values[len(l.values)-1])
	}
	scale := roundUp(top, lowest)
	m.put(`<figure class="chart"><figcaption><b>%v</b> <span class="top">%v</span></figcaption>`, title, write(scale))
	m.put(`<svg viewBox="0 -1 %v %v" preserveAspectRatio="none" role="img" aria-label="%v, last two minutes: %v; at most %v">`,
		chartWidth, chartHeight+2, title, strings.Join(latest, ", "), write(top))
	m.put(`<path class="axis" d="M0 0H%vM0 %vH%v"/>`, chartWidth, chartHeight, chartWidth)
	for _, l := range lines {
		if path, area := trace(l.values, scale); path != "" {
			if strings.Contains(l.class, "filled") {
				m.put(`<path class="area %v" d="%v"/>`, l.class, area)
			}
			m.put(`<path class="line %v" d="%v"/>`, l.class, path)
		}
	}
	m.put(`</svg><ul class="keys">`)
	for i, l := range lines {
		m.put(`<li class="%v">%v</li>`, l.class, latest[i])
	}
	m.put(`</ul></figure>`)
}

// trace returns the line through values, and the area below it. The line breaks
// where values are missing for more than three steps.
func trace(values []float64, scale float64) (path, area string) {
	var p, a strings.Builder
	last := -1 // the step drawn last
	end := func() {
		if last >= 0 {
			fmt.Fprintf(&a, "V%dZ", chartHeight)
		}
	}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		x, y := 2*i, math.Round(chartHeight*10*(1-min(max(v/scale, 0), 1)))/10
		if last < 0 || i-last > 3 {
			end()
			fmt.Fprintf(&p, "M%d %vh.01", x, y)
			fmt.Fprintf(&a, "M%d %dV%v", x, chartHeight, y)
		} else {
			fmt.Fprintf(&p, "L%d %v", x, y)
			fmt.Fprintf(&a, "L%d %v", x, y)
		}
		last = i
	}
	end()
	return p.String(), a.String()
}

// roundUp returns step, or the smallest round multiple of step that is at least v.
func roundUp(v, step float64) float64 {
	for step < v && step < math.MaxFloat64/10 {
		for _, f := range []float64{2, 3, 4, 5, 6, 8, 10} {
			if f*step >= v {
				return f * step
			}
		}
		step *= 10
	}
	return step
}
