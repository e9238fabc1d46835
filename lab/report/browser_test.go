package report

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/lab/internal/labtest/browser"
	"github.com/spillway-go/spillway/lab/ledger"
)

func TestMain(m *testing.M) { browser.Main(m) }

func open(t *testing.T, page string, d browser.Device) *browser.Tab {
	t.Helper()
	return browser.Open(t, "file://"+page, d)
}

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
	b := open(t, reportFile(t), browser.Device{Width: 1280})
	for section, least := range map[string]int{"verdicts": 8, "outcomes": 6, "latency": 10, "process": 12} {
		js := strings.Replace(visibleCharts, "svg.chart", "#"+section+" svg.chart", 1)
		if n := browser.Eval[int](b, js); n < least {
			t.Errorf("section %s shows %d charts, want at least %d", section, n, least)
		}
	}
	// Colours come from the style sheet: a bar of good requests is green.
	if fill := browser.Eval[string](b, `getComputedStyle(document.querySelector("#outcomes .fill.ok")).fill`); fill != "rgb(0, 128, 92)" {
		t.Errorf("good requests are drawn in %s", fill)
	}
}

const tipSeen = `(document.getElementById("tip").getBoundingClientRect().width > 0)`

func TestHoveringTellsTheFigures(t *testing.T) {
	b := open(t, reportFile(t), browser.Device{Width: 1280})
	browser.Eval[bool](b, openAll)
	for selector, want := range map[string]string{
		"#outcomes .fill.ok.tip": "good a second",
		"#latency .mark.tip":     "took at most",
		"#process .tip .hit":     "median",
		"#verdicts .strip .mark": "published: ",
		"#claim-H4 .fill.band":   "rule: 45–57 %",
		"#claim-H1 .fill.noise":  "margin: within ± 3 % of the edge",
		"#outcomes .spread .hit": "good a second",
	} {
		b.MoveTo(1, 1)
		b.MoveTo(b.Middle(selector))
		b.Until(tipSeen)
		if got := browser.Eval[string](b, `document.getElementById("tip").textContent`); !strings.Contains(got, want) {
			t.Errorf("over %s the tooltip says %q, want %q in it", selector, got, want)
		}
	}
	b.MoveTo(1, 1)
	b.Until("!" + tipSeen)
}

func TestAChartOpensEnlargedAndZooms(t *testing.T) {
	b := open(t, reportFile(t), browser.Device{Width: 1280})
	b.Do(chromedp.MouseClickXY(b.Middle("#latency .enlarge")))
	b.Until(`document.querySelector("dialog svg.chart") !== null`)
	const viewBox, at = `document.querySelector("dialog svg").getAttribute("viewBox")`,
		`(() => { const r = document.querySelector("dialog svg").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2, r.width]; })()`
	before, box := browser.Eval[string](b, viewBox), browser.Eval[[]float64](b, at)
	if box[2] < 700 {
		t.Errorf("the enlarged chart is %v pixels wide", box[2])
	}
	b.Do(browser.Send(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: box[0], Y: box[1], DeltaX: .1, DeltaY: -300}))
	b.Until(fmt.Sprintf("%s !== %q", viewBox, before))
	b.Do(chromedp.MouseClickXY(b.Middle("dialog button")))
	b.Until(`!document.querySelector("dialog").open`)
}

func TestTheLegendMakesAContestantStandOut(t *testing.T) {
	b := open(t, reportFile(t), browser.Device{Width: 1280})
	const dim = `document.querySelectorAll("#latency .dim").length`
	if n := browser.Eval[int](b, dim); n != 0 {
		t.Fatalf("%d marks are dimmed at first", n)
	}
	b.MoveTo(b.Middle("#latency [data-series=s0]"))
	b.Until(dim + " > 0")
	b.MoveTo(1, 1)
	b.Until(dim + " === 0")
}

func TestANarrowScreenNeedsNoSidewaysScrolling(t *testing.T) {
	write := func(name string, text string, err error) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := cmp.Or(err, os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	session, err := sessionPage(together(3))
	swept := renderedOf(t, ledger.Family{Title: "a sweep"}, first(sweep(2)), second(sweep(2)))
	for _, page := range []string{reportFile(t), write("session.html", session, err), write("sweep.html", swept, nil)} {
		b := open(t, page, browser.Device{Width: 320})
		browser.Eval[bool](b, openAll)
		if over := browser.Eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s is %d pixels wider than the screen", filepath.Base(page), over)
		}
		if n := browser.Eval[int](b, visibleCharts); n < 15 {
			t.Errorf("%s shows %d charts", filepath.Base(page), n)
		}
	}
}

// openAll unfolds everything.
const openAll = `(() => { document.querySelectorAll("details").forEach((d) => { d.open = true; }); return true; })()`

func TestThePageReadsWellWithoutItsScript(t *testing.T) {
	b := open(t, reportFile(t), browser.Device{Width: 1280, NoScript: true})
	if n := browser.Eval[int](b, visibleCharts); n < 40 {
		t.Errorf("%d charts are visible", n)
	}
	if n := browser.Eval[int](b, `document.querySelectorAll("svg .tip > title").length`); n < 100 {
		t.Errorf("%d marks have a native tooltip", n)
	}
	if browser.Eval[bool](b, `document.querySelector(".enlarge") !== null`) {
		t.Error("a button that needs the script is shown without it")
	}
}

func TestHostileTextStaysTextInTheBrowser(t *testing.T) {
	dir := t.TempDir()
	res, runs := damaged()
	if err := Write(dir, fakeFamily, res, runs); err != nil {
		t.Fatal(err)
	}
	b := open(t, filepath.Join(dir, "report.html"), browser.Device{Width: 1280})
	if n := browser.Eval[int](b, `document.querySelectorAll("script").length`); n != 1 {
		t.Errorf("the page has %d scripts, want its own", n)
	}
	if !browser.Eval[bool](b, `document.querySelector(".banner").getBoundingClientRect().height > 20`) {
		t.Error("the banner of a partial result is not seen")
	}
}
