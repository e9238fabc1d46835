package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/load/compare"
)

// twentyStatuses are those that the server of the status table answers; 429 and 503 with reasons.
var twentyStatuses = strings.Fields("200 201 202 204 206 400 401 403 404 405 409 410 413 422 429 500 501 502 503 504")

func TestALoadReportsEachStatusAndError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.URL.Path[1:])
		switch {
		case r.URL.Path == "/reset":
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
			return
		case r.URL.Path == "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case err != nil:
			t.Error(err)
		case status == 503 || status == 429:
			w.Header().Set("Spillway-Reason", r.URL.Query().Get("reason"))
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	var targets strings.Builder
	for _, status := range append(twentyStatuses, "503?reason=queue_full", "429?reason=quota", "reset", "half") {
		fmt.Fprintf(&targets, "POST %s/%s\n", server.URL, status)
	}
	lines := strings.Count(targets.String(), "\n")
	send := func(args ...string) string {
		var out, errs strings.Builder
		args = append([]string{"load", "-c", "4", "-n", strconv.Itoa(10 * lines)}, args...)
		if code := runWith(t.Context(), args, strings.NewReader(targets.String()), &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		return out.String()
	}
	var got loadSummary
	if err := json.Unmarshal([]byte(send("--json")), &got); err != nil {
		t.Fatal(err)
	}
	rows, all := map[string]uint64{}, uint64(0)
	for _, c := range got.Causes {
		rows[fmt.Sprint(c.Outcome, c.Status, c.Reason)] += c.Count
		all += c.Count
	}
	if all != uint64(10*lines) || len(rows) != 23 {
		t.Errorf("%d requests in %v, want %d in 23 rows", all, rows, 10*lines)
	}
	for row, n := range map[string]uint64{"ok204": 10, "error404": 10, "rejected503": 10, "rejected503queue_full": 10, "rejected429": 10, "rejected429quota": 10, "error0": 20} {
		if rows[row] != n {
			t.Errorf("%s: %d, want %d", row, rows[row], n)
		}
	}
	good := got.Outcomes[0]
	sum := uint64(0)
	for i, b := range good.Buckets {
		sum += b.Count
		if b.UpTo <= b.Above || i > 0 && b.Above != good.Buckets[i-1].UpTo {
			t.Errorf("bucket %+v after %+v", b, good.Buckets[max(i, 1)-1])
		}
	}
	if l := good.Latency; sum != good.Count || l.P90 < l.P50 || l.P90 > l.P95 {
		t.Errorf("%d in buckets of %d, %+v", sum, good.Count, l)
	}
	if len(got.Phases) != 2 || got.Phases[0].Phase != "connect" || got.Phases[1].Phase != "first byte" || got.Phases[0].Count == 0 || got.Phases[1].Took.P99 <= 0 {
		t.Errorf("phases: %+v", got.Phases)
	}
	text := send()
	for _, want := range []string{"p90", "p99.9", "\nlatencies of ok (ms):\n", "  503 Service Unavailable, queue_full\n", "  404 Not Found\n", "unexpected EOF\n", "\nphase ", "\nfirst byte "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestAPictureIsSmallAndHasAllLatencies(t *testing.T) {
	var none, one, wide histogram.Histogram
	one.Record(0)
	for d := time.Microsecond; d < time.Minute; d *= 3 {
		wide.RecordN(int64(d), 7)
	}
	for _, h := range []*histogram.Histogram{&none, &one, &wide} {
		sum := uint64(0)
		rows := coarse(h)
		for _, b := range rows {
			sum += b.Count
		}
		var drawn strings.Builder
		picture(&drawn, rows)
		if sum != h.Count() || len(rows) > 30 || strings.Count(drawn.String(), "\n") != len(rows) {
			t.Errorf("%d of %d latencies in\n%s", sum, h.Count(), drawn.String())
		}
	}
}

// files writes the certificate and the key of a server's own as PEM files.
func files(t *testing.T, c tls.Certificate) (certificate, key string) {
	t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{
		"cert.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})),
		"key.pem":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	})
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

func TestAClientShowsItsCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	cert, key := files(t, server.TLS.Certificates[0])
	args := []string{"load", "-c", "2", "-n", "20", "-e", "ok>=100%", server.URL, "--cacert", cert}
	if code, stdout, stderr := command(t, append(args, "--cert", cert, "--key", key)...); code != 0 || !strings.Contains(stdout, "\ntls ") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if code, stdout, _ := command(t, args...); code != 1 || !strings.Contains(stdout, "403 Forbidden") {
		t.Errorf("without a certificate: exit code %d\n%s", code, stdout)
	}
	for want, more := range map[string][]string{
		"--key goes with --cert":              {"--key", key},
		"--cert and --key: ":                  {"--cert", cert, "--key", cert},
		"--cert: open ":                       {"--cert", cert + "x"},
		"--unix and --proxy exclude":          {"--unix", key, "--proxy", "http://localhost:1"},
		"the proxy: want a URL such as http:": {"--proxy", "localhost:1"},
	} {
		if code, _, stderr := command(t, append(args, more...)...); code != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s, want %q", more, code, stderr, want)
		}
	}
	if code, _, stderr := command(t, "load", "-c", "1", "-n", "1", "--cacert", key, server.URL); code != 2 || !strings.Contains(stderr, "--cacert: no certificate in it") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestALoadGoesThroughAProxyOrAUnixSocket(t *testing.T) {
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host == "server.invalid" {
			proxied.Add(1)
		}
	}))
	defer proxy.Close()
	args := []string{"load", "-c", "2", "-n", "20", "-e", "ok>=100%", "http://server.invalid/"}
	if code, _, stderr := command(t, append(args, "-x", proxy.URL)...); code != 0 || proxied.Load() != 20 {
		t.Errorf("exit code %d, %d requests by the proxy, %s", code, proxied.Load(), stderr)
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip("SKIPPED: this system has no Unix sockets:", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = server.Serve(l) }()
	defer server.Shutdown(context.WithoutCancel(t.Context()))
	if code, stdout, stderr := command(t, append(args, "--unix", path)...); code != 0 {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if code, _, stderr := command(t, append(args, "--unix", path+"x")...); code != 2 || !strings.Contains(stderr, "no server answers") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// A generator without free files once blamed the server, and an SLO that was not kept was a verdict.
func TestAGeneratorOutOfFilesGivesNoVerdict(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has another limit of open files")
	}
	enough := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { // holds its connections
		select {
		case <-enough:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(enough)
	few := func(args ...string) (code int, stdout, stderr string) {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -n 24; exec "$0" "$@"`, os.Args[0]}, args...)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
	const says = "ran out of open files"
	code, stdout, stderr := few("load", "-c", "60", "-n", "120", "-t", "200ms", "-e", "error<100%", "--json", server.URL)
	var got loadSummary
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err, stderr)
	}
	local := uint64(0)
	for _, c := range got.Causes {
		if c.Generator {
			local += c.Count
		}
	}
	if code != 1 || !strings.Contains(got.Invalid, says) || !strings.Contains(stderr, "ulimit -n") || local == 0 || !got.Expectations[0].Void || got.Expectations[0].Kept {
		t.Errorf("load: exit code %d, %s, %d of the generator, %+v", code, stderr, local, got)
	}

	code, stdout, stderr = few("compare", "-q", "1000", "--block", "100ms", "-t", "200ms", "--json", server.URL, server.URL)
	var compared compare.Result
	if err := json.Unmarshal([]byte(stdout), &compared); err != nil {
		t.Fatal(err, stderr)
	}
	if code != 3 || compared.Verdict != compare.Undecided || !strings.Contains(compared.Why, says) || compared.Void == "" {
		t.Errorf("compare: exit code %d, %s, %+v", code, stderr, compared)
	}
}
