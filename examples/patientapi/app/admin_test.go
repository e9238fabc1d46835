package app

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func TestAdminListenerHasWhatTheClientsOneHasNot(t *testing.T) {
	c := quick()
	c.Admin.Addr = "127.0.0.1:0"
	r := start(t, c)
	for _, path := range []string{"/metrics", "/health", "/debug/spillway/", "/debug/pprof/", "/debug/pprof/heap"} {
		if status, _ := r.get(t, path); status != 404 {
			t.Errorf("%s for clients: %d", path, status)
		}
		if status, _ := r.operate(t, path); status != 200 {
			t.Errorf("%s for the admin: %d", path, status)
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if status, _ := r.get(t, path); status != 200 {
			t.Errorf("%s for a probe: %d", path, status)
		}
		if status, _ := r.operate(t, path); status != 200 {
			t.Errorf("%s for a probe of the admin listener: %d", path, status)
		}
	}
	// The command line may hold what is not for everybody who may see a profile.
	if status, body := r.operate(t, "/debug/pprof/cmdline"); status != 404 || strings.Contains(body, os.Args[0]) {
		t.Errorf("the command line: %d %s", status, body)
	}
}

func TestAdminListenerIsOnLoopbackUnlessToldOtherwise(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:6060"} {
		c := quick()
		c.Admin.Addr = addr
		var out bytes.Buffer
		err := c.Run(t.Context(), &out, &out)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--admin-public") || out.Len() > 0 {
			t.Errorf("%s: %v, wrote %s", addr, err, &out)
		}
	}
	for _, addr := range []string{"localhost:0", "127.0.0.1:0"} {
		c := quick()
		c.Admin.Addr = addr
		if status, _ := start(t, c).operate(t, "/metrics"); status != 200 {
			t.Errorf("%s: %d", addr, status)
		}
	}
	c := quick()
	c.Admin.Addr, c.Admin.Public = ":0", true
	r := start(t, c)
	_, port, err := net.SplitHostPort(r.admin)
	require.NoError(t, err)
	if status, _ := get(t, "http://127.0.0.1:"+port+"/metrics"); status != 200 {
		t.Errorf("told otherwise: %d", status)
	}
}
