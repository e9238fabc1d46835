package oncall

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/lab/internal/labtest/browser"
)

func TestMain(m *testing.M) { browser.Main(m) }

// open serves the page and opens it.
func open(t *testing.T, served http.Handler, d browser.Device) *browser.Tab {
	t.Helper()
	server := httptest.NewServer(served)
	t.Cleanup(server.Close) // after the tab is gone, whose stream it would wait for
	return browser.Open(t, server.URL+"/debug/spillway/", d)
}
