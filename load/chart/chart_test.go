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
	return map[string]template.HTML{
		"lines": Lines{
			Title: "Latency", Height: 160,
			X: Axis{Log: true, Label: "at once"}, Y: Axis{Log: true},
			Series: []Series{
				{Name: "a", Points: []Point{{X: 1, Y: 1}, {X: 10, Y: 20, Tip: "a: 20 ms", Low: 10, High: 30}, {X: 100, Y: 90}, {X: 10_000, Y: 200}}},
				{Name: "b", Number: 1, Points: []Point{{X: 1, Y: 2}, {X: 100, Y: 2}, {X: 100, Y: 2, Tip: "b: 99 %"}}},
			},
		}.SVG(),
		"named": Lines{
			Title: "Goodput", Height: 160, Named: true, X: Axis{Log: true}, Y: Axis{Label: "a second"},
			Series: []Series{{Name: "a", Points: []Point{{X: 1, Y: 240}, {X: 10, Y: 250}}}, {Name: "b", Number: 1, Points: []Point{{X: 1, Y: 200}, {X: 10, Y: 248}}}, {Name: "a contestant with a very long name", Number: 2, Points: []Point{{X: 1, Y: 200}}}},
			Refs:   []Ref{{At: 250, Label: "capacity"}, {At: 2, Upright: true, Label: "knee"}},
		}.SVG(),
		"interval": Interval{
			Title: "H1", Class: "holds", X: Axis{Scale: Around(3.9, 4.2, 4, 5)}, Measured: 4.1, Figure: Range{4, 4.2},
			Repeats: []float64{4, 4.1, 4.2}, Bands: []Range{{4, 5}}, Published: []Range{{4, 5}}, Margins: []Range{{3.95, 4.05}, {4.95, 5.05}},
		}.SVG(),
		"interval_open": Interval{
			Title: "outside 10–12", X: Axis{Scale: Around(8, 14)}, Measured: 11, Figure: Range{9, 12},
			Bands: []Range{{math.Inf(-1), 10}, {12, math.Inf(1)}}, Published: []Range{{36, 36}},
		}.SVG(),
		"interval_small": Interval{
			Class: "fails", X: Axis{Scale: Around(3, 5)}, Measured: 3, Figure: Range{3, 3.2},
			Bands: []Range{{4, 5}}, Published: []Range{{4, 4.4}}, Margins: []Range{{3.9, 4.1}},
		}.Small(),
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
					Series: []Series{{Name: text, Points: []Point{{X: a, Y: b}, {b, a, text, a, b}, {X: a, Y: a}}}, {}}}.SVG())
				odd := Interval{Title: text, X: ax, Measured: a, Figure: Range{b, a}, Repeats: []float64{a, b}, Bands: []Range{{a, b}}, Published: []Range{{a, a}}, Margins: []Range{{b, a}}}
				wellFormed(t, odd.SVG())
				wellFormed(t, odd.Small())
			}
		}
	}
}

func TestNamesOfLinesDoNotLieOnEachOther(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	label := regexp.MustCompile(`<text class="label" x="[^"]*" y="([^"]*)">`)
	for range 100 {
		l := Lines{Height: 200, Named: true}
		for i := range 8 {
			l.Series = append(l.Series, Series{Name: "line", Number: i, Points: []Point{{}, {X: 1, Y: math.Floor(3 * r.Float64())}}})
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

// Loads have long names: one that has no room beside its neighbour lies beneath it.
func TestLabelsThatTouchLieOnTwoLines(t *testing.T) {
	x := Axis{Scale: Scale{Min: .5, Max: 3.5}, Ticks: func(Scale) []Tick { return []Tick{{1, "a queue of 100"}, {2, "a queue of 200"}, {3, "a queue of 500"}} }}
	label := regexp.MustCompile(`<text class="tick" x="[^"]*" y="([^"]*)">a queue`)
	for name, want := range map[string][]string{"": {"140", "154", "140"}, "size": {"140", "140"}} {
		x.Label = name
		var ys []string
		for _, m := range label.FindAllStringSubmatch(string(Lines{Height: 160, Named: true, X: x, Series: []Series{{Name: "a contestant", Points: []Point{{X: 1, Y: 1}}}}}.SVG()), -1) {
			ys = append(ys, m[1])
		}
		if !slices.Equal(ys, want) {
			t.Errorf("with the name %q: labels at %v, want %v", name, ys, want)
		}
	}
}
