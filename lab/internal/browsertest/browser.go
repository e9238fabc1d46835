// Package browsertest opens pages in a headless Chromium, for tests.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// running are the browsers that the tests of a package share, one for each size of text:
// starting one takes longer than most tests.
var (
	running = map[int]context.Context{}
	stops   []func()
)

// Main is the TestMain of a package that opens pages one after the other. It ends the
// browsers.
func Main(m *testing.M) {
	code := m.Run()
	for _, stop := range stops {
		stop()
	}
	os.Exit(code)
}

// need skips the test without a browser, unless SPILLWAY_REQUIRE says that there has to
// be one.
func need(t *testing.T) (path string) {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no chromium found: install one (apt-get install chromium) to see the page in a real browser"
	if slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "chromium") {
		t.Fatal(missing)
	}
	t.Skip("SKIPPED, the page was not opened in a browser: " + missing)
	return ""
}

// started is the browser whose user wants text of a size. It reaches nothing but this
// machine.
func started(path string, fontSize int) (context.Context, error) {
	if ctx := running[fontSize]; ctx != nil {
		return ctx, nil
	}
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if fontSize > 0 {
		opts = append(opts, chromedp.Flag("blink-settings", fmt.Sprintf("defaultFontSize=%d", fontSize)))
	}
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, _ := chromedp.NewContext(alloc)
	stops = append(stops, func() {
		cancel() // waits for the process
		_ = os.RemoveAll(dir)
	})
	running[fontSize] = ctx
	return ctx, chromedp.Do(ctx) // without a step: the browser, for tabs to share
}
