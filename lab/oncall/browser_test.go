package oncall

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// action is a step without a result.
type action = chromedp.Action[chromedp.Void]

// send makes a step of a protocol command.
func send[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// device is what a page is opened on.
type device struct {
	width    int64
	dark     bool
	fontSize int  // the reader's own text size in pixels; zero means the usual 16
	noScript bool // the browser runs none
}

// tab is a tab of the browser. What it complains about fails the test.
type tab struct {
	context.Context
	t          *testing.T
	mu         sync.Mutex
	complaints []string
}

// chromium returns the path of a browser, if there is one.
func chromium() (path string, ok bool) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// needChromium skips the test without a browser, unless SPILLWAY_REQUIRE says that
// there has to be one.
func needChromium(t *testing.T) {
	t.Helper()
	if _, ok := chromium(); ok {
		return
	}
	const missing = "no chromium found: install one (apt-get install chromium) to see the page in a real browser"
	if slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "chromium") {
		t.Fatal(missing)
	}
	t.Skip("SKIPPED, the page was not opened in a browser: " + missing)
}

// browsers are shared by all tests, one for each size of text: starting one takes
// longer than any test.
var (
	browsers = map[int]context.Context{}
	stops    []func()
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, stop := range stops {
		stop()
	}
	os.Exit(code)
}

// browser returns the browser whose user wants text of a size.
func browser(fontSize int) (context.Context, error) {
	if ctx := browsers[fontSize]; ctx != nil {
		return ctx, nil
	}
	dir, err := os.MkdirTemp("", "oncall")
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.UserDataDir(dir), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if fontSize > 0 {
		opts = append(opts, chromedp.Flag("blink-settings", fmt.Sprintf("defaultFontSize=%d", fontSize)))
	}
	if path, ok := chromium(); ok {
		opts = append(opts, chromedp.ExecPath(path))
	}
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, _ := chromedp.NewContext(alloc)
	stops = append(stops, func() {
		cancel() // waits for the process
		_ = os.RemoveAll(dir)
	})
	browsers[fontSize] = ctx
	return ctx, chromedp.Do(ctx) // without a step: the browser, for tabs to share
}

// open serves the page and opens it.
func open(t *testing.T, served http.Handler, d device) *tab {
	t.Helper()
	needChromium(t)
	server := httptest.NewServer(served)
	t.Cleanup(server.Close) // after the tab is gone, whose stream it would wait for
	parent, err := browser(d.fontSize)
	if err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)

	b := &tab{Context: ctx, t: t}
	err = chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.complain("an exception: " + e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			b.complain(fmt.Sprintf("console.%s was called", e.Type))
		case *log.EventEntryAdded:
			b.complain(e.Entry.Text + " " + e.Entry.URL)
		}
	})
	if err != nil {
		t.Fatalf("no tab opens: %v", err)
	}
	scheme := "light"
	if d.dark {
		scheme = "dark"
	}
	b.do(send(log.Enable, cdp.Empty{}), send(runtime.Enable, cdp.Empty{}),
		send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		send(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: d.noScript}),
		chromedp.EmulateViewport(d.width, 900),
		chromedp.Navigate(server.URL+"/debug/spillway/"), chromedp.WaitReady("footer"))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Errorf("the browser complains: %s", c)
		}
	})
	return b
}

func (b *tab) complain(of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, of)
}

func (b *tab) do(steps ...action) {
	b.t.Helper()
	if err := chromedp.Do(b, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func eval[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// until waits for a condition in the page.
func (b *tab) until(js string) {
	b.t.Helper()
	if _, err := chromedp.Run(b, chromedp.Poll[bool](js)); err != nil {
		b.t.Fatalf("%s: %v; the page says: %s", js, err, eval[string](b, `document.body.innerText`))
	}
}

// shot keeps a picture of the whole page in the folder that SPILLWAY_SHOTS names.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("SPILLWAY_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
