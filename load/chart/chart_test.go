package chart

import (
	"bytes"
	"encoding/xml"
	"flag"
	"html/template"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// drawings are one chart of each kind, small enough to be read as text.
func drawings() map[string]template.HTML {
	nines := Nines(10_000)
	nines.Label = "share of requests"
	return map[string]template.HTML{
		"lines": Lines{
			Title: "Latency", Height: 160,
			X: nines, Y: Axis{Log: true},
			Series: []Series{
				{Name: "a", Points: []XY{{1, 1}, {10, 20}, {100, 90}, {10_000, 200}}, Marks: []Mark{{XY{10, 20}, "a: 90 % took at most 20 ms"}}},
				{Name: "b", Number: 1, Points: []XY{{1, 2}, {100, 2}, {100, 2}}, Marks: []Mark{{XY{100, 2}, "b: 99 %"}}},
			},
		}.SVG(),
		"named": Lines{
			Title: "Goodput", Height: 160, Named: true, X: Axis{Log: true}, Y: Axis{Label: "a second"},
			Series: []Series{{Name: "a", Points: []XY{{1, 240}, {10, 250}}}, {Name: "b", Number: 1, Points: []XY{{1, 200}, {10, 248}}}, {Name: "c", Number: 2, Points: []XY{{1, 200}}}},
			Refs:   []Ref{{At: 250, Label: "capacity"}, {At: 2, Upright: true, Label: "knee"}},
		}.SVG(),
		"bars": Bars{
			Title: "Requests a second", X: Axis{Label: "a second"},
			Rows: []BarRow{
				{Name: "naive", Label: "950 good/s", Segments: []Segment{{"ok", 950, "950 good"}, {"error", 50, "50 errors"}}},
				{Name: "a contestant with a very long name", Alarm: "killed", Segments: []Segment{{"ok", 250, ""}, {"rejected", 10, ""}, {"timeout", 0, "never drawn"}}},
			},
		}.SVG(),
		"dots": Dots{
			Title: "Peak goroutines", X: Axis{Log: true, Label: "logarithmic"},
			Rows: []DotRow{
				{Name: "low load"},
				{Name: "naive", Values: []float64{990, 1000, 1010}, Median: 1000, Label: "1,000", Tip: "naive: 1,000"},
				{Name: "pool", Series: 1, Values: []float64{20}, Median: 20, Label: "20"},
				{Name: "none", Series: 2, Label: "–"},
			},
		}.SVG(),
		"heat": Heat{
			Title: "Latency over time", Height: 160, Desc: "in words", X: Axis{Scale: Scale{Max: 4}, Label: "seconds"},
			Y:       Axis{Label: "time", Ticks: func(Scale) []Tick { return []Tick{{1, "10 ms"}, {2, "20 ms"}} }},
			Columns: [][]float64{{.5, .5}, {.5, .45, .05}, {}, {0, .01, .99}},
		}.SVG(),
		"interval": Interval{
			Title: "H1", Class: "holds", X: Axis{Scale: Around(3.9, 4.2, 4, 5)}, Measured: 4.1, Figure: Range{4, 4.2, "measured"},
			Repeats: []float64{4, 4.1, 4.2}, Bands: []Range{{4, 5, "rule: 4–5x"}}, Published: []Range{{4, 5, "published"}}, Margins: []Range{{3.95, 4.05, "margin"}, {4.95, 5.05, "margin"}},
		}.SVG(),
		"interval_open": Interval{
			Title: "outside 10–12", X: Axis{Scale: Around(8, 14)}, Measured: 11, Figure: Range{9, 12, ""},
			Bands: []Range{{math.Inf(-1), 10, ""}, {12, math.Inf(1), ""}}, Published: []Range{{36, 36, ""}},
		}.SVG(),
		"interval_small": Interval{
			Class: "fails", X: Axis{Scale: Around(3, 5)}, Measured: 3, Figure: Range{3, 3.2, "measured"},
			Bands: []Range{{4, 5, "rule"}}, Published: []Range{{4, 4.4, "published"}}, Margins: []Range{{3.9, 4.1, "margin"}},
		}.Small(),
		"strip":  Strip(Scale{-.1, .1, false}, 0, DotRow{Series: 1, Values: []float64{-.05, 0, .06}, Tip: "spread"}),
		"marker": Marker(2),
		"swatch": Swatch("ok"),
	}
}

func TestDrawingsAreAsTheyWere(t *testing.T) {
	for name, drawing := range drawings() {
		path := filepath.Join("testdata", name+".svg")
		got := strings.ReplaceAll(string(drawing), "><", ">\n<") + "\n"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, []byte(got)) {
			t.Errorf("%s is drawn differently; look at the difference and run go test -update if it is meant:\n%s", name, got)
		}
	}
}

// wellFormed fails unless the drawing is XML without NaN or infinite numbers.
func wellFormed(t *testing.T, drawing template.HTML) {
	t.Helper()
	svg := string(drawing)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
	}
	if odd := oddNumber.FindString(svg); odd != "" {
		t.Fatalf("%s in %s", odd, svg)
	}
}

var oddNumber = regexp.MustCompile(`NaN|Inf|="[^"]*\de[+-]`)

func TestNoInputBreaksADrawing(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e300, 5e-324, 7}
	const text = `<"&'>` + "\x00\x1b[31m"
	for _, a := range odd {
		for _, b := range odd {
			for _, s := range []Scale{FromZero(a, b), Around(a, b), LogAround(a, b), {a, b, false}, {a, b, true}} {
				if n := len(s.Ticks(4)); n > 60 {
					t.Errorf("%+v has %d ticks", s, n)
				}
				ax := Axis{Label: text, Scale: s}
				wellFormed(t, Lines{Title: text, X: ax, Y: ax, Named: true, Refs: []Ref{{a, true, text}, {b, false, text}},
					Series: []Series{{Name: text, Points: []XY{{a, b}, {b, a}, {a, a}}, Marks: []Mark{{XY{b, a}, text}}}, {}}}.SVG())
				wellFormed(t, Bars{Title: text, X: ax, Rows: []BarRow{{Name: text, Segments: []Segment{{text, a, text}, {text, b, text}}}}}.SVG())
				wellFormed(t, Heat{Title: text, X: ax, Y: ax, Desc: text, Columns: [][]float64{{a, b}, nil, {b}}}.SVG())
				wellFormed(t, Heat{Title: text, X: ax, Y: ax, Columns: [][]float64{nil}}.SVG())
				wellFormed(t, Dots{Title: text, X: ax, Rows: []DotRow{{Name: text, Values: []float64{a, b}, Label: text, Tip: text}}}.SVG())
				odd := Interval{Title: text, X: ax, Measured: a, Figure: Range{b, a, text}, Repeats: []float64{a, b}, Bands: []Range{{a, b, text}}, Published: []Range{{a, a, ""}}, Margins: []Range{{b, a, ""}}}
				wellFormed(t, odd.SVG())
				wellFormed(t, odd.Small())
			}
		}
	}
}

// Every field with a share is in the one rectangle of its colour that covers it.
func TestEveryFieldOfAHeatMapHasTheColourOfItsShare(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	shape, rectangle := regexp.MustCompile(`<path class="fill level(\d)" d="([^"]*)"/>`), regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	const columns, rows = 20, 6
	for range 50 {
		h := Heat{Height: 160, Columns: make([][]float64, columns)}
		var want, got [columns][rows]int
		for x := range h.Columns {
			h.Columns[x] = make([]float64, rows)
			for y := range h.Columns[x] {
				if r.IntN(3) > 0 {
					want[x][y] = 1 + r.IntN(len(HeatLevels))
					h.Columns[x][y] = HeatLevels[want[x][y]-1]
				}
			}
		}
		for _, s := range shape.FindAllStringSubmatch(string(h.SVG()), -1) {
			for _, m := range rectangle.FindAllStringSubmatch(s[2], -1) {
				if m[3] != m[4] {
					t.Fatalf("%s is not closed", m[0])
				}
				for x := range number(m[3]) {
					got[number(m[1])+x][rows-1-number(m[2])] += 1 + number(s[1])
				}
			}
		}
		if got != want {
			t.Fatalf("%v is drawn as %v", want, got)
		}
	}
}

func TestNamesOfLinesDoNotLieOnEachOther(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	label := regexp.MustCompile(`<text class="label" x="[^"]*" y="([^"]*)">`)
	for range 100 {
		l := Lines{Height: 200, Named: true}
		for i := range 8 {
			l.Series = append(l.Series, Series{Name: "line", Number: i, Points: []XY{{0, 0}, {1, math.Floor(3 * r.Float64())}}})
		}
		var ys []float64
		for _, m := range label.FindAllStringSubmatch(string(l.SVG()), -1) {
			y, _ := strconv.ParseFloat(m[1], 64)
			ys = append(ys, y)
		}
		slices.Sort(ys)
		for i := range ys[1:] {
			if ys[i+1]-ys[i] < 12.9 || ys[i+1] > 200 {
				t.Fatalf("names at %v", ys)
			}
		}
	}
}

func TestScalesStayInsideAndKeepOrder(t *testing.T) {
	for _, s := range []Scale{FromZero(3, 7), Around(2, 3), Around(1, 1e6), Around(5, 5), LogAround(50, 400)} {
		last := 0.0
		for i := range 100 {
			at := s.At(s.Min + (s.Max-s.Min)*float64(i)/99)
			if at < last || at > 1 {
				t.Fatalf("%+v: step %d lies at %v after %v", s, i, at, last)
			}
			last = at
		}
		if s.At(s.Min) != 0 || s.At(s.Max) != 1 {
			t.Errorf("%+v does not reach from 0 to 1", s)
		}
		ticks := s.Ticks(4)
		if len(ticks) < 2 || len(ticks) > 9 || !slices.IsSorted(ticks) {
			t.Errorf("%+v has ticks %v", s, ticks)
		}
		for _, v := range ticks {
			if v < s.Min-1e-9 || v > s.Max+1e-9 {
				t.Errorf("%+v has a tick at %v", s, v)
			}
		}
	}
}

func TestNinesAreEquallyFarApart(t *testing.T) {
	s := Nines(1_000_000).Scale
	var labels []string
	for _, tick := range Nines(1_000_000).Ticks(s) {
		labels = append(labels, tick.Label)
	}
	if want := []string{"50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"}; !slices.Equal(labels, want) {
		t.Errorf("ticks %q, want %q", labels, want)
	}
	step := s.At(100) - s.At(10)
	for n := 100.0; n < 1e6; n *= 10 {
		if got := s.At(n*10) - s.At(n); math.Abs(got-step) > 1e-9 {
			t.Errorf("from %v on a nine is %v wide, want %v", n, got, step)
		}
	}
}

func TestAxisLabelsEndWithoutZeros(t *testing.T) {
	for label, want := range map[string]string{"2.50 ms": "2.5 ms", "4.00x": "4x", "1,000": "1,000", "100 %": "100 %", "0.05": "0.05"} {
		if got := shorten(label); got != want {
			t.Errorf("%q becomes %q on an axis, want %q", label, got, want)
		}
	}
}
