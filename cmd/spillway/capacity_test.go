package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/load/capacity"
)

func TestBadInputOfCapacityAndCompare(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"want p50, p90":             {"capacity", "--slo", "p98=1s", server.URL},
		"the largest rate":          {"capacity", "--max-rate", "0", server.URL},
		"want at least 10s":         {"capacity", "--time", "1s", server.URL},
		"make the folder":           {"capacity", "--html", os.Args[0] + "/page.html", server.URL},
		"the traffic is +Inf":       {"capacity", "--traffic", "inf", server.URL},
		"no server answers":         {"capacity", "http://127.0.0.1:1"},
		"rounds is 4":               {"compare", "--rounds", "4", "true", "true"},
		"one of the two is a URL":   {"compare", server.URL, "true"},
		"give one host":             {"compare", "--unix", "/tmp/s", "--rate", "1", "http://a/", "http://b/"},
		"is empty: want a PEM file": {"load", "--cacert", empty, "-n", "1", server.URL},
		"either --rate N":           {"compare", server.URL, server.URL},
		"want cpu, printed, wall":   {"compare", "--metric", "p99", "true", "true"},
		"a block of at least 10ms":  {"compare", "--rate", "1", "--block", "1ms", server.URL, server.URL},
		`the command "exit 7" fail`: {"compare", "exit 7", "exit 7"},
	} {
		code, stdout, stderr := command(t, args...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "see spillway "+args[0]+" --help") {
			t.Errorf("%v: exit code %d, %q, %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

func TestACapacityThatIsNotThereIsExitCode1(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	page := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := command(t, "capacity", "--time", "10s", "--json", "--html", page, server.URL)
	var r capacity.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 1 || r.Ending != capacity.NeverKept || len(r.Points) != 2 || !strings.Contains(stderr, "no rate kept the SLO") {
		t.Errorf("exit code %d, %v\n%s\n%s", code, err, stdout, stderr)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "No rate kept the SLO") {
		t.Errorf("the page: %v", err)
	}
}

func TestCtrlCInACapacitySearchPrintsThePartialCurve(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n.Add(1) == 8 { // of the five at the first rate, and then of the second
			cancel()
		}
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"capacity", "--slo", "p50=30s", "--time", "10s", server.URL}, &stdout, &stderr)
	if code != 130 || !strings.Contains(stdout.String(), "10/s") || !strings.Contains(stdout.String(), "partial") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout.String(), stderr.String())
	}
}

func TestAPageThatCannotBeWrittenLosesNoResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"capacity", "--time", "10s", "--html", t.TempDir(), server.URL}, &stdout, &stderr)
	if code != 1 || !strings.Contains(stdout.String(), "no knee") || !strings.Contains(stderr.String(), "the page was not written: ") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout.String(), stderr.String())
	}
}

func TestCompareAnswersByItsExitCode(t *testing.T) {
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{0, []string{"--metric", "printed", "echo 2", "echo 1"}, "B is better"},
		{1, []string{"--metric", "printed", "echo 1", "echo 2"}, "B is worse"},
		{0, []string{"--metric", "printed", "--more", "echo 1", "echo 2"}, "B is better"},
		{3, []string{"--metric", "printed", "echo 1", "echo 1"}, "Undecided"},
	} {
		code, stdout, stderr := command(t, append([]string{"compare", "--rounds", "7"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.says) || stderr != "" {
			t.Errorf("%v: exit code %d\n%s\n%s", c.args, code, stdout, stderr)
		}
	}
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"compare", "--rounds", "7", "--metric", "printed", "echo 2", "echo 1"}, full{}, &errs); code != 1 || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("a full disk: exit code %d, %q", code, errs.String())
	}
}

func TestTwoURLsAreCompared(t *testing.T) {
	t.Parallel()
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer good.Close()
	bad := httptest.NewServer(http.NotFoundHandler())
	defer bad.Close()
	code, stdout, stderr := command(t, "compare", "--metric", "errors", "--rate", "200", "--block", "20ms", "--rounds", "7", "--json", good.URL, bad.URL)
	if code != 1 || !strings.Contains(stdout, `"verdict": "B is worse"`) {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
}
