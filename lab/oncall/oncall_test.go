package oncall

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/lab/internal/browsertest"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func newLimiter(t *testing.T, cfg limiter.Config) *limiter.Limiter {
	t.Helper()
	lim, err := limiter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// small returns a limiter with four slots and no queue.
func small(t *testing.T, name string, mode limiter.Mode) *limiter.Limiter {
	t.Helper()
	return newLimiter(t, limiter.Config{Name: name, Mode: mode, Law: limit.NewFixed(4), QueueSize: -1})
}

// acquire takes n slots, or as many as there are.
func acquire(lim *limiter.Limiter, n int, p spillway.Priority) (all []limiter.Permit) {
	for range n {
		if permit, err := lim.Acquire(spillway.WithPriority(context.Background(), p)); err == nil {
			all = append(all, permit)
		}
	}
	return all
}

// says waits until the words are in a part of the page.
func says(b *browsertest.Tab, selector, words string) {
	b.T.Helper()
	b.Until(has(selector, words))
}

// has is an expression for: the words are in a part of the page.
func has(selector, words string) string {
	return fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? "").replace(/\s+/g, " ").includes(%q)`, selector, words)
}

func TestFiguresMoveUnderLoad(t *testing.T) {
	lim := small(t, "orders", limiter.Enforce)
	b := open(t, admissionhttp.DebugHandler(lim), browsertest.Device{Width: 1280})
	says(b, "#limiter-1 .figures", "In flight 0 of 4 slots")
	says(b, "#link", "live")
	says(b, "#summary", "All is calm.")
	permits := acquire(lim, 3, spillway.Normal)
	says(b, "#limiter-1 .figures", "In flight 3 of 4 slots")
	says(b, "#limiter-1-priorities ~ .scroll", "in flight 3")
	for _, p := range permits {
		p.Done(nil)
	}
	says(b, "#limiter-1 .figures", "In flight 0 of 4 slots")
	b.Until(`document.querySelectorAll("#limiter-1 .chart path.line").length >= 4`)
	if n := browsertest.Eval[int](b, `[...document.querySelectorAll("#limiter-1 .chart svg")].filter((s) => s.getBoundingClientRect().height > 40).length`); n != 4 {
		t.Errorf("%d charts are seen", n)
	}
}

func TestARefusalShowsItsReason(t *testing.T) {
	lim := small(t, "orders", limiter.Enforce)
	b := open(t, admissionhttp.DebugHandler(lim), browsertest.Device{Width: 1280})
	says(b, "#limiter-1", "Nothing was refused.")
	says(b, "#link", "live")
	permits := acquire(lim, 6, spillway.Low)
	says(b, "#limiter-1-reasons ~ .scroll", "queue_full")
	says(b, "#limiter-1-reasons ~ .scroll", "as many wait as may wait")
	shown := ""
	await.True(t, "the page says what is refused", func() bool {
		permits[0].Done(nil) // the page tells of the last ten seconds, and a slow machine may show it later
		permits = append(permits[1:], acquire(lim, 2, spillway.Low)...)
		shown = browsertest.Eval[string](b, `getComputedStyle(document.querySelector("#limiter-1 .badge")).color`)
		return browsertest.Eval[bool](b, has("#limiter-1 .badge", "refusing: queue_full")+" && "+has("#summary", "orders: refusing: queue_full."))
	})
	if shown != "rgb(168, 51, 5)" {
		t.Errorf("a refusal is shown in %s", shown)
	}
}

func TestTheReportOfADryRun(t *testing.T) {
	lim := small(t, "search", limiter.DryRun)
	acquire(lim, 3, spillway.High)
	acquire(lim, 3, spillway.Low)
	b := open(t, admissionhttp.DebugHandler(small(t, "orders", limiter.Enforce), lim), browsertest.Device{Width: 1280})
	for _, words := range []string{"33 % of the work: 2 of 6", "Estimate:", "high 3 0 0 %", "low 3 2 67 %", "queue_full"} {
		says(b, "#dry-run", words)
	}
	if strings.Contains(browsertest.Eval[string](b, `document.querySelector("#dry-run").innerText`), "orders") {
		t.Error("the report has a limiter that enforces")
	}
}

// fits fails the test if the page is wider than the screen.
func fits(b *browsertest.Tab) {
	b.T.Helper()
	if over := browsertest.Eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		wide := browsertest.Eval[string](b, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll")).map((e) => e.tagName + "." + e.className).join(" ")`)
		b.T.Errorf("the page is %d pixels wider than the screen: %s", over, wide)
	}
}

// busy returns limiters that have something to say everywhere, one in long words.
func busy(t *testing.T) []*limiter.Limiter {
	orders, search := small(t, "orders", limiter.Enforce), small(t, "search", limiter.DryRun)
	long := newLimiter(t, limiter.Config{
		Name:    strings.Repeat("reports-of-the-last-year/", 5),
		Signals: []limiter.Signal{limiter.Gauge("wait_for_a_connection_of_the_pool", func() float64 { return 2 }, 1)},
	})
	acquire(long, 1, spillway.Normal)
	for p := spillway.Low; p <= spillway.Critical; p++ {
		acquire(orders, 3, p)
		acquire(search, 3, p)
	}
	if err := orders.SetBounds(0, 2); err != nil {
		t.Fatal(err)
	}
	return []*limiter.Limiter{orders, search, long}
}

func TestAPhoneNeedsNoSidewaysScrolling(t *testing.T) {
	b := open(t, admissionhttp.DebugHandler(busy(t)...), browsertest.Device{Width: 360})
	says(b, "#link", "live")
	fits(b)
	if cut := browsertest.Eval[int](b, `[...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth).length`); cut != 0 {
		t.Errorf("%d tables are wider than a phone", cut)
	}
}

func TestTextGrowsWithTheReadersSize(t *testing.T) {
	page := admissionhttp.DebugHandler(busy(t)...)
	const sizes = `[...document.querySelectorAll("h1, #summary, .figures b, .figures small, td, th, figcaption, .keys li, .state, button")].map((e) => parseFloat(getComputedStyle(e).fontSize))`
	a, b := open(t, page, browsertest.Device{Width: 360}), open(t, page, browsertest.Device{Width: 360, FontSize: 32})
	var usual, large []float64
	await.True(t, "both pages have the same texts", func() bool { // a page has more to say later
		usual, large = browsertest.Eval[[]float64](a, sizes), browsertest.Eval[[]float64](b, sizes)
		return len(usual) > 0 && len(usual) == len(large)
	})
	for i := range usual {
		if large[i] < 1.99*usual[i] {
			t.Fatalf("a text grows from %v to %v pixels only", usual[i], large[i])
		}
	}
	fits(b)
}

func TestDarkAndLight(t *testing.T) {
	page := admissionhttp.DebugHandler(busy(t)...)
	const ground = `getComputedStyle(document.body).backgroundColor`
	// The contrast of every text with what is behind it, by the formula of WCAG.
	const least = `(() => {
		const parts = (c) => (c.match(/[\d.]+/g) || []).map(Number);
		const light = (c) => {
			const [r, g, b] = parts(c).map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
			return .2126 * r + .7152 * g + .0722 * b;
		};
		const behind = (e) => {
			for (; e; e = e.parentElement) {
				const c = getComputedStyle(e).backgroundColor;
				if (parts(c)[3] !== 0) return c;
			}
		};
		let least = 21;
		for (const e of document.querySelectorAll("body *")) {
			const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
			if (!own || e.getBoundingClientRect().height === 0) continue;
			const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
			least = Math.min(least, (a + .05) / (b + .05));
		}
		return least;
	})()`
	for dark, want := range map[bool]string{false: "rgb(246, 247, 245)", true: "rgb(16, 20, 24)"} {
		b := open(t, page, browsertest.Device{Width: 800, Dark: dark})
		if got := browsertest.Eval[string](b, ground); got != want {
			t.Errorf("dark %v: the ground is %s, want %s", dark, got, want)
		}
		if got := browsertest.Eval[float64](b, least); got < 4.5 {
			t.Errorf("dark %v: the least contrast of a text is %.2f, want 4.5", dark, got)
		}
	}
}

func TestItReadsWithoutItsScript(t *testing.T) {
	b := open(t, admissionhttp.DebugHandler(busy(t)...), browsertest.Device{Width: 800, NoScript: true})
	b.Do()
	if text := browsertest.Eval[string](b, `document.body.innerText`); !strings.Contains(text, "queue_full") || strings.Contains(text, "Pause") {
		t.Errorf("the page says %s", text)
	}
}

func TestPauseStopsTheFigures(t *testing.T) {
	lim := small(t, "orders", limiter.Enforce)
	b := open(t, admissionhttp.DebugHandler(lim), browsertest.Device{Width: 800})
	says(b, "#link", "live")
	const click = `(document.getElementById("pause").click(), document.getElementById("pause").textContent)`
	if got := browsertest.Eval[string](b, click); got != "Resume" {
		t.Errorf("the button says %s", got)
	}
	says(b, "#link", "paused")
	acquire(lim, 2, spillway.Normal)
	says(b, "#limiter-1 .figures", "In flight 0 of 4 slots")
	if got := browsertest.Eval[string](b, click); got != "Pause" {
		t.Errorf("the button says %s", got)
	}
	says(b, "#limiter-1 .figures", "In flight 2 of 4 slots")
}

func TestHostileNamesStayText(t *testing.T) {
	const name = `"><img src=x onerror="document.title='broken'"><script>document.title='broken'</script>`
	b := open(t, admissionhttp.DebugHandler(small(t, name, limiter.Enforce)), browsertest.Device{Width: 800})
	says(b, "#limiter-1 h2", "<script>")
	says(b, "#link", "live")
	if n, title := browsertest.Eval[int](b, `document.querySelectorAll("script, img").length`), browsertest.Eval[string](b, `document.title`); n != 1 || title != "Spillway" {
		t.Errorf("%d scripts and images, the title is %s", n, title)
	}
}

// Closing the limiters ends the stream, so that a server's Shutdown does not wait.
func TestTheStreamEndsWithTheLimiters(t *testing.T) {
	lim := small(t, "orders", limiter.Enforce)
	b := open(t, admissionhttp.DebugHandler(lim), browsertest.Device{Width: 800})
	says(b, "#link", "live")
	lim.Close()
	says(b, "#link", "closed")
	says(b, "#limiter-1", "The intake is closed.")
}

// A page said "All is calm" for as long as it stayed open after its process had died.
func TestAPageWhoseProcessIsGoneIsGreyAndSaysSinceWhen(t *testing.T) {
	server := httptest.NewServer(admissionhttp.DebugHandler(small(t, "orders", limiter.Enforce)))
	b := browsertest.Open(t, server.URL, browsertest.Device{Width: 800})
	says(b, "#link", "live")
	b.Forgive("net::ERR_")
	b.Forgive("Failed to fetch")
	server.Listener.Close() // first: the page would connect again
	server.CloseClientConnections()
	says(b, "#link", "no connection since")
	says(b, "#link", "the process may be gone")
	if got := browsertest.Eval[float64](b, `Number(getComputedStyle(document.querySelector("main")).opacity)`); got > 0.5 {
		t.Errorf("the opacity is %v", got)
	}
	server.Close()
}

// work is n pieces of work of a kind that end with err.
func work(t *testing.T, lim *limiter.Limiter, kind string, n int, err error) {
	t.Helper()
	for range n {
		p, refused := lim.Acquire(spillway.WithKind(context.Background(), kind))
		if refused != nil {
			t.Fatal(refused)
		}
		p.Done(err)
	}
}

// All answers were 500, and the page was calm.
func TestWorkThatFailsIsNotCalm(t *testing.T) {
	lim := small(t, "orders", limiter.Enforce)
	b := open(t, admissionhttp.DebugHandler(lim), browsertest.Device{Width: 360})
	says(b, "#summary", "All is calm.")
	await.True(t, "the page says that work fails, and which", func() bool {
		work(t, lim, "GET /orders", 5, nil)
		work(t, lim, "GET /reports", 95, errors.New("failed"))
		return browsertest.Eval[bool](b, has("#summary", "orders: 100 % of GET /reports fails.")+" && "+has("#limiter-1 .todo", "What to do")+" && "+has("#limiter-1-kinds ~ .scroll", "GET /reports 0"))
	})
	fits(b)
}

func TestTheKindThatHoldsTheSlotsIsNamed(t *testing.T) {
	lim := small(t, "orders", limiter.Enforce)
	b := open(t, admissionhttp.DebugHandler(lim), browsertest.Device{Width: 360})
	for i := range 9 {
		work(t, lim, fmt.Sprintf("GET /quick/%d", i), 20, nil)
	}
	for range 3 {
		p, err := lim.Acquire(spillway.WithKind(context.Background(), "GET /slow"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Release)
	}
	says(b, "#limiter-1-kinds ~ .scroll", "GET /slow 3")
	says(b, "#limiter-1 .figures", "GET /slow")
	first := browsertest.Eval[string](b, `document.querySelector("#limiter-1-kinds ~ .scroll tbody th").innerText`)
	if first != "GET /slow" {
		t.Errorf("the first kind is %s", first)
	}
	fits(b)
}

func TestTheKeyboardReachesAllThatCanBeUsed(t *testing.T) {
	lim := small(t, "orders", limiter.Enforce)
	b := open(t, admissionhttp.DebugHandler(lim, small(t, "search", limiter.Enforce)), browsertest.Device{Width: 800})
	acquire(lim, 9, spillway.Normal)
	says(b, "#limiter-1 .todo", "The runbook")
	seen := map[string]bool{}
	for range 12 {
		b.Key("\t")
		if browsertest.Eval[bool](b, `document.activeElement === document.body`) {
			continue // past the end of the page
		}
		name := browsertest.Eval[string](b, `document.activeElement.innerText.trim()`)
		seen[name] = true
		if browsertest.Eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
			t.Errorf("the focus on %q is not seen", name)
		}
	}
	for _, want := range []string{"Pause", "orders", "search", "The runbook", "The same as JSON"} {
		if !seen[want] {
			t.Errorf("the keyboard does not reach %q: %v", want, seen)
		}
	}
	browsertest.Eval[bool](b, `(document.getElementById("pause").focus(), true)`)
	b.Key("\r")
	says(b, "#link", "paused")
}
