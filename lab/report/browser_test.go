package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/lab/internal/browsertest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

func reportFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	res, runs := fake(3)
	if err := Write(dir, fakeFamily, res, runs); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "report.html")
}

// visibleCharts counts the drawings that take up room on the page.
const visibleCharts = `[...document.querySelectorAll("svg.chart")].filter(s => {
	const r = s.getBoundingClientRect();
	return r.width > 100 && r.height > 10 && getComputedStyle(s).visibility === "visible";
}).length`

func TestChartsAreSeenInABrowserWithoutANetwork(t *testing.T) {
	for _, d := range []browsertest.Device{{Width: 1280}, {Width: 1280, Dark: true}} {
		b := browsertest.Open(t, "file://"+reportFile(t), d)
		for section, least := range map[string]int{"verdicts": 8, "measured": 10} {
			js := strings.Replace(visibleCharts, "svg.chart", "#"+section+" svg.chart", 1)
			if n := browsertest.Eval[int](b, js); n < least {
				t.Errorf("section %s shows %d charts, want at least %d", section, n, least)
			}
		}
		want := map[bool]string{false: "rgb(200, 80, 10)", true: "rgb(240, 135, 71)"}[d.Dark]
		if fill := browsertest.Eval[string](b, `getComputedStyle(document.querySelector("#measured .s0 .mark")).fill`); fill != want {
			t.Errorf("dark %v: the first contestant is drawn in %s, want %s", d.Dark, fill, want)
		}
	}
}

const tipSeen = `(document.getElementById("tip").getBoundingClientRect().width > 0)`

func TestHoveringTellsTheFigures(t *testing.T) {
	b := browsertest.Open(t, "file://"+reportFile(t), browsertest.Device{Width: 1280})
	b.MoveTo(b.Middle("#measured .mark.tip"))
	b.Until(tipSeen)
	if got := browsertest.Eval[string](b, `document.getElementById("tip").textContent`); !strings.Contains(got, "naive at low load: median ") {
		t.Errorf("the tooltip says %q", got)
	}
	b.MoveTo(1, 1)
	b.Until("!" + tipSeen)
}

func TestAChartOpensEnlargedAndZooms(t *testing.T) {
	b := browsertest.Open(t, "file://"+reportFile(t), browsertest.Device{Width: 1280})
	b.Do(chromedp.MouseClickXY(b.Middle("#measured .enlarge")))
	b.Until(`document.querySelector("dialog svg.chart") !== null`)
	const viewBox, at = `document.querySelector("dialog svg").getAttribute("viewBox")`,
		`(() => { const r = document.querySelector("dialog svg").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2, r.width]; })()`
	before, box := browsertest.Eval[string](b, viewBox), browsertest.Eval[[]float64](b, at)
	if box[2] < 700 {
		t.Errorf("the enlarged chart is %v pixels wide", box[2])
	}
	b.Do(browsertest.Send(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: box[0], Y: box[1], DeltaX: .1, DeltaY: -300}))
	b.Until(fmt.Sprintf("%s !== %q", viewBox, before))
	b.Do(chromedp.MouseClickXY(b.Middle("dialog button")))
	b.Until(`!document.querySelector("dialog").open`)
}

func TestANarrowScreenNeedsNoSidewaysScrolling(t *testing.T) {
	for name, page := range pages(t) {
		path := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		b := browsertest.Open(t, "file://"+path, browsertest.Device{Width: 320})
		browsertest.Eval[bool](b, openAll)
		if over := browsertest.Eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s is %d pixels wider than the screen", name, over)
		}
		if n := browsertest.Eval[int](b, visibleCharts); n < 6 {
			t.Errorf("%s shows %d charts", name, n)
		}
	}
}

// openAll unfolds everything.
const openAll = `(() => { document.querySelectorAll("details").forEach((d) => { d.open = true; }); return true; })()`

func TestThePageReadsWellWithoutItsScript(t *testing.T) {
	b := browsertest.Open(t, "file://"+reportFile(t), browsertest.Device{Width: 1280, NoScript: true})
	if n := browsertest.Eval[int](b, visibleCharts); n < 20 {
		t.Errorf("%d charts are visible", n)
	}
	if n := browsertest.Eval[int](b, `document.querySelectorAll("svg .tip > title").length`); n < 50 {
		t.Errorf("%d marks have a native tooltip", n)
	}
	if browsertest.Eval[bool](b, `document.querySelector(".enlarge") !== null`) {
		t.Error("a button that needs the script is shown without it")
	}
}
