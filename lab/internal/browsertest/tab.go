package browsertest

import (
	"context"
	"fmt"
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
)

// Device is what a page is opened on.
type Device struct {
	Width    int64
	Dark     bool
	FontSize int  // the reader's own text size in pixels; zero means the usual 16
	NoScript bool // the browser runs none
}

// Tab is a page in a tab of the browser. What the browser complains about fails the test,
// and so does a request for anything but the page itself, or what its own server has.
type Tab struct {
	context.Context
	T *testing.T

	origin     string // what requests may begin with
	mu         sync.Mutex
	complaints []string
	forgiven   []string
}

// Forgive lets the browser complain of what contains words, such as a connection that the test ends.
func (b *Tab) Forgive(words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgiven = append(b.forgiven, words)
}

// Action is a step without a result.
type Action = chromedp.Action[chromedp.Void]

// Send makes a step of a protocol command.
func Send[P, R any](c cdp.Command[P, R], params P) Action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Open opens a page that has a footer. One that is a file has no network. Without a
// browser the test is skipped.
func Open(t *testing.T, url string, d Device) *Tab {
	t.Helper()
	parent, err := started(need(t), d.FontSize)
	if err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)

	b := &Tab{Context: ctx, T: t, origin: url}
	_, file := strings.CutPrefix(url, "file:")
	if !file {
		b.origin = strings.Join(strings.SplitAfterN(url, "/", 4)[:3], "")
	}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("no tab opens: %v", err)
	}
	scheme := map[bool]string{false: "light", true: "dark"}[d.Dark]
	steps := []Action{Send(network.Enable, network.EnableParams{}), Send(log.Enable, cdp.Empty{}), Send(runtime.Enable, cdp.Empty{}),
		Send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		Send(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: d.NoScript})}
	if file {
		steps = append(steps, Send(network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: true}))
	}
	b.Do(append(steps, chromedp.EmulateViewport(d.Width, 900), chromedp.Navigate(url), chromedp.WaitReady("footer"))...)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Errorf("the browser complains: %s", c)
		}
	})
	return b
}

// hear takes what the browser says of the page.
func (b *Tab) hear(ev any) {
	var of string
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		of = "an exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		of = fmt.Sprintf("console.%s was called", e.Type)
	case *log.EventEntryAdded:
		of = e.Entry.Text + " " + e.Entry.URL
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !slices.ContainsFunc([]string{"data:", b.origin}, func(p string) bool { return strings.HasPrefix(url, p) }) {
			of = "it was sent for " + url
		}
	}
	if of == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.forgiven, func(words string) bool { return strings.Contains(of, words) }) {
		return
	}
	b.complaints = append(b.complaints, of)
}

// Do does steps, or fails the test.
func (b *Tab) Do(steps ...Action) {
	b.T.Helper()
	if err := chromedp.Do(b, steps...); err != nil {
		b.T.Fatal(err)
	}
}

// Eval is the value of an expression in the page.
func Eval[T any](b *Tab, js string) T {
	b.T.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](js))
	if err != nil {
		b.T.Fatal(err)
	}
	return v
}

// Until waits for a condition in the page.
func (b *Tab) Until(js string) {
	b.T.Helper()
	if _, err := chromedp.Run(b, chromedp.Poll[bool](js)); err != nil {
		b.T.Fatalf("%s: %v; the page says: %s", js, err, Eval[string](b, `document.body.innerText`))
	}
}

// Middle scrolls an element into view and says where its middle is, once the page has
// noticed that it was scrolled.
func (b *Tab) Middle(selector string) (x, y float64) {
	b.T.Helper()
	at, err := chromedp.Run(b, chromedp.Evaluate[[]float64](fmt.Sprintf(`new Promise((done) => {
		const e = document.querySelector(%q);
		e.scrollIntoView({block: "center", behavior: "instant"});
		requestAnimationFrame(() => requestAnimationFrame(() => {
			const r = e.getBoundingClientRect();
			done([r.x + r.width / 2, r.y + r.height / 2]);
		}));
	})`, selector), chromedp.EvalAwaitPromise))
	if err != nil {
		b.T.Fatal(err)
	}
	return at[0], at[1]
}

// MoveTo moves the mouse.
func (b *Tab) MoveTo(x, y float64) {
	b.T.Helper()
	b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}

// Key presses keys.
func (b *Tab) Key(keys string) {
	b.T.Helper()
	b.Do(chromedp.KeyEvent(keys))
}
