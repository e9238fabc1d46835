package report

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// panel is a picture with its caption.
type panel struct {
	Title   string
	Drawing template.HTML
}

// Panels are the pictures of a set-up, the main one first. A grid has none beside itself.
func (s *session) Panels(g *setup) (out []panel) {
	if s.detail == tables || s.inGrid(g) {
		return nil
	}
	notRefused := quantile(.99, "ok", "error", "timeout")
	all := []column{good, {refusedShare.name, refusedShare.of, "percent"}, {"p99 of whatever was not refused", notRefused, "nanos"}, criticalGood, cpu, peakRSS}
	for _, k := range g.measured(append(all, owns(s.Family.Columns)...)) {
		if out = append(out, panel{k.name, s.picture(g, k).SVG()}); s.detail == mainPicture {
			break
		}
	}
	return out
}

// picture is one figure over the loads of a set-up: a line for each contestant, through its
// medians, each with the reach of its repeats.
func (s *session) picture(g *setup, k column) chart.Lines {
	x, at := s.across(g)
	lines := chart.Lines{Title: sentence(k.name) + ", " + g.Name, Named: true, X: x, Y: chart.Axis{Format: k.text}}
	var all stat
	for i, name := range s.patterns {
		line, said := chart.Series{Name: name, Number: i}, []string{}
		for j, l := range g.loads {
			c := l.cell(name)
			v := c.stat(k.of)
			if len(v) == 0 || math.IsNaN(at[j]) {
				continue
			}
			all = append(all, v...)
			line.Points = append(line.Points, chart.Point{X: at[j], Y: v.median(), Low: slices.Min(v), High: slices.Max(v), Tip: fmt.Sprintf("%s at %s: %s", name, loadName(l.name), v.spread(k.text))})
			said = append(said, v.or(k.text)+" at "+loadName(l.name)+pick(len(c.killed) > 0, ", killed", ""))
		}
		if line.Desc = strings.Join(said, ", "); len(said) > 0 {
			lines.Series = append(lines.Series, line)
		}
	}
	if slices.Contains([]string{"nanos", "micros", "size"}, k.format) && len(all) > 0 && slices.Min(all) > 0 && slices.Max(all) > 20*slices.Min(all) {
		lines.Y.Log, lines.Y.Label = true, "logarithmic"
	}
	if k.format == "size" {
		lines.Y.Ticks = sizeTicks
	}
	if k.name == good.name {
		lines.Refs = knee(g)
	}
	lines.Height = max(250, 70+13*float64(len(lines.Series)))
	return lines
}

// across is the axis of the loads of a set-up, and where each of them lies: multiples of a
// capacity by their number, others side by side. What is no multiple has no place among them.
func (s *session) across(g *setup) (x chart.Axis, at []float64) {
	x = chart.Axis{Label: s.Family.Axes[g.Name], Scale: chart.Scale{Min: .5, Max: float64(len(g.loads)) + .5}}
	swept := len(g.sweep()) > 1
	if swept {
		x = chart.Axis{Label: "offered, in multiples of the capacity", Log: true}
	}
	var ticks []chart.Tick
	for i, l := range g.loads {
		at = append(at, float64(i+1))
		if swept {
			at[i] = positive(l.cells[0].multiple)
		}
		if !math.IsNaN(at[i]) {
			ticks = append(ticks, chart.Tick{At: at[i], Label: l.name})
		}
	}
	x.Ticks = func(chart.Scale) []chart.Tick { return ticks }
	return x, at
}

// knee is where the service does all that it can, if it was measured what that is.
func knee(g *setup) (refs []chart.Ref) {
	x, all := g.sweep(), stat{}
	if len(x) < 2 {
		return nil
	}
	if slices.Min(x) < 1 && slices.Max(x) > 1 {
		refs = append(refs, chart.Ref{At: 1, Upright: true, Label: "the knee"})
	}
	for _, c := range g.cells {
		all = append(all, c.stat(extra("capacity"))...)
	}
	if len(all) > 0 {
		refs = append(refs, chart.Ref{At: all.median(), Label: "capacity " + all.or(number)})
	}
	return refs
}

// sizeTicks are round numbers of KiB, MiB or GiB.
func sizeTicks(s chart.Scale) (ticks []chart.Tick) {
	unit := 1.0
	for s.Max/unit >= 1024 {
		unit *= 1024
	}
	for _, v := range (chart.Scale{Min: s.Min / unit, Max: s.Max / unit, Log: s.Log}).Ticks(3) {
		ticks = append(ticks, chart.Tick{At: v * unit, Label: size(v * unit)})
	}
	return ticks
}

// alone is what a page would say of a drawing, and its ground.
const alone = `.chart { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; } .ground { fill: var(--card); }
</style><rect class="ground" x="-16" y="-16" width="100%" height="100%" rx="10"/>`

// Curve draws goodput against offered load as a picture of its own, for light and dark
// pages, from the first set-up that was loaded with several multiples of its capacity.
func Curve(w io.Writer, res results.Results, runs []results.Run) error {
	s := newSession(ledger.Family{}, res, runs)
	i := slices.IndexFunc(s.Setups, func(g *setup) bool { return len(g.sweep()) > 1 })
	if i < 0 {
		return errors.New("there is no curve: the runs were not made under several multiples of a capacity; draw the results of spillway lab overload")
	}
	lines := s.picture(s.Setups[i], good)
	lines.Title, lines.Width, lines.Height = "Good answers a second against offered load", 640, 360
	_, err := strings.NewReplacer(`viewBox="0 0 640 360"`, `viewBox="-16 -16 672 392" xmlns="http://www.w3.org/2000/svg"`,
		"</desc>", "</desc><style>"+chart.Style+alone).WriteString(w, string(lines.SVG()))
	return err
}
