package report

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/lab/ledger"
)

// chromium returns the path of a browser. Without one the test is skipped,
// unless SPILLWAY_REQUIRE says that there has to be one.
func chromium(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no chromium found: install one (apt-get install chromium) to see the report in a real browser"
	if slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "chromium") {
		t.Fatal(missing)
	}
	t.Skip("SKIPPED, the report was not opened in a browser: " + missing)
	return ""
}

// browser is a tab without a network. It records every console error and every
// request that leaves the page.
type browser struct {
	context.Context
	t  *testing.T
	mu sync.Mutex

	complaints []string
	requests   []string
}

// action is a step without a result.
type action = chromedp.Action[chromedp.Void]

// send makes a step of a protocol command.
func send[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func open(t *testing.T, page string, width int64, before ...action) *browser {
	t.Helper()
	path := chromium(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"))
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
	t.Cleanup(cancel)

	b := &browser{Context: ctx, t: t}
	url := "file://" + page
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, "an exception: "+e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			b.complaints = append(b.complaints, fmt.Sprintf("console.%s was called", e.Type))
		case *log.EventEntryAdded:
			b.complaints = append(b.complaints, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if url := e.Request.URL; !strings.HasPrefix(url, "data:") {
				b.requests = append(b.requests, url)
			}
		}
	})
	if err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	b.do(append(slices.Clone(before),
		send(network.Enable, network.EnableParams{}), send(log.Enable, cdp.Empty{}), send(runtime.Enable, cdp.Empty{}),
		send(network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: true}),
		chromedp.EmulateViewport(width, 900),
		chromedp.Navigate(url), chromedp.WaitReady("footer"))...)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Errorf("the browser complains: %s", c)
		}
		if !slices.Equal(b.requests, []string{url}) {
			t.Errorf("requests %q, want the page alone", b.requests)
		}
	})
	return b
}

func (b *browser) do(steps ...action) {
	b.t.Helper()
	if err := chromedp.Do(b, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func eval[T any](b *browser, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// until waits for a condition in the page.
func (b *browser) until(js string) {
	b.t.Helper()
	if _, err := chromedp.Run(b, chromedp.Poll[bool](js)); err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
}

// middle scrolls an element into view and says where its middle is, once the
// page has noticed that it was scrolled.
func (b *browser) middle(selector string) (x, y float64) {
	b.t.Helper()
	at, err := chromedp.Run(b, chromedp.Evaluate[[]float64](fmt.Sprintf(`new Promise((done) => {
		const e = document.querySelector(%q);
		e.scrollIntoView({block: "center", behavior: "instant"});
		requestAnimationFrame(() => requestAnimationFrame(() => {
			const r = e.getBoundingClientRect();
			done([r.x + r.width / 2, r.y + r.height / 2]);
		}));
	})`, selector), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return at[0], at[1]
}

func (b *browser) moveTo(x, y float64) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
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
	b := open(t, reportFile(t), 1280)
	for section, least := range map[string]int{"verdicts": 8, "outcomes": 6, "latency": 10, "process": 12} {
		js := strings.Replace(visibleCharts, "svg.chart", "#"+section+" svg.chart", 1)
		if n := eval[int](b, js); n < least {
			t.Errorf("section %s shows %d charts, want at least %d", section, n, least)
		}
	}
	// Colours come from the style sheet: a bar of good requests is green.
	if fill := eval[string](b, `getComputedStyle(document.querySelector("#outcomes .fill.ok")).fill`); fill != "rgb(0, 128, 92)" {
		t.Errorf("good requests are drawn in %s", fill)
	}
}

const tipSeen = `(document.getElementById("tip").getBoundingClientRect().width > 0)`

func TestHoveringTellsTheFigures(t *testing.T) {
	b := open(t, reportFile(t), 1280)
	eval[bool](b, openAll)
	for selector, want := range map[string]string{
		"#outcomes .fill.ok.tip": "good a second",
		"#latency .mark.tip":     "took at most",
		"#process .tip .hit":     "median",
		"#verdicts .strip .mark": "published: ",
		"#claim-H4 .fill.band":   "rule: 45–57 %",
		"#claim-H1 .fill.noise":  "margin: within ± 3 % of the edge",
		"#outcomes .spread .hit": "good a second",
	} {
		b.moveTo(1, 1)
		b.moveTo(b.middle(selector))
		b.until(tipSeen)
		if got := eval[string](b, `document.getElementById("tip").textContent`); !strings.Contains(got, want) {
			t.Errorf("over %s the tooltip says %q, want %q in it", selector, got, want)
		}
	}
	b.moveTo(1, 1)
	b.until("!" + tipSeen)
}

func TestAChartOpensEnlargedAndZooms(t *testing.T) {
	b := open(t, reportFile(t), 1280)
	b.do(chromedp.MouseClickXY(b.middle("#latency .enlarge")))
	b.until(`document.querySelector("dialog svg.chart") !== null`)
	const viewBox, at = `document.querySelector("dialog svg").getAttribute("viewBox")`,
		`(() => { const r = document.querySelector("dialog svg").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2, r.width]; })()`
	before, box := eval[string](b, viewBox), eval[[]float64](b, at)
	if box[2] < 700 {
		t.Errorf("the enlarged chart is %v pixels wide", box[2])
	}
	b.do(send(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: box[0], Y: box[1], DeltaX: .1, DeltaY: -300}))
	b.until(fmt.Sprintf("%s !== %q", viewBox, before))
	b.do(chromedp.MouseClickXY(b.middle("dialog button")))
	b.until(`!document.querySelector("dialog").open`)
}

func TestTheLegendMakesAContestantStandOut(t *testing.T) {
	b := open(t, reportFile(t), 1280)
	const dim = `document.querySelectorAll("#latency .dim").length`
	if n := eval[int](b, dim); n != 0 {
		t.Fatalf("%d marks are dimmed at first", n)
	}
	b.moveTo(b.middle("#latency [data-series=s0]"))
	b.until(dim + " > 0")
	b.moveTo(1, 1)
	b.until(dim + " === 0")
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
		b := open(t, page, 320)
		eval[bool](b, openAll)
		if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s is %d pixels wider than the screen", filepath.Base(page), over)
		}
		if n := eval[int](b, visibleCharts); n < 15 {
			t.Errorf("%s shows %d charts", filepath.Base(page), n)
		}
	}
}

// openAll unfolds everything.
const openAll = `(() => { document.querySelectorAll("details").forEach((d) => { d.open = true; }); return true; })()`

func TestThePageReadsWellWithoutItsScript(t *testing.T) {
	b := open(t, reportFile(t), 1280, send(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	if n := eval[int](b, visibleCharts); n < 40 {
		t.Errorf("%d charts are visible", n)
	}
	if n := eval[int](b, `document.querySelectorAll("svg .tip > title").length`); n < 100 {
		t.Errorf("%d marks have a native tooltip", n)
	}
	if eval[bool](b, `document.querySelector(".enlarge") !== null`) {
		t.Error("a button that needs the script is shown without it")
	}
}

func TestHostileTextStaysTextInTheBrowser(t *testing.T) {
	dir := t.TempDir()
	res, runs := damaged()
	if err := Write(dir, fakeFamily, res, runs); err != nil {
		t.Fatal(err)
	}
	b := open(t, filepath.Join(dir, "report.html"), 1280)
	if n := eval[int](b, `document.querySelectorAll("script").length`); n != 1 {
		t.Errorf("the page has %d scripts, want its own", n)
	}
	if !eval[bool](b, `document.querySelector(".banner").getBoundingClientRect().height > 20`) {
		t.Error("the banner of a partial result is not seen")
	}
}
