package oncall

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/lab/internal/browsertest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

// open serves the page and opens it.
func open(t *testing.T, served http.Handler, d browsertest.Device) *browsertest.Tab {
	t.Helper()
	server := httptest.NewServer(served)
	t.Cleanup(server.Close) // after the tab is gone, whose stream it would wait for
	return browsertest.Open(t, server.URL+"/debug/spillway/", d)
}
