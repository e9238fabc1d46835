package loadgen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// breaking is a server whose answer is the path: a status, a reset, or half an answer.
func breaking(t *testing.T) string {
	url, _ := scripted(t, func(_ int64, c net.Conn) {
		r := bufio.NewReader(c)
		for {
			request, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			what := request.URL.Path[1:]
			status, reason, _ := strings.Cut(what, "/")
			switch what {
			case "reset":
				_ = c.(*net.TCPConn).SetLinger(0)
				return
			case "half":
				_, _ = io.WriteString(c, ok200+"Content-Length: 50\r\n\r\nhalf")
				return
			case "nonsense":
				_, _ = io.WriteString(c, "nonsense\r\n\r\n")
				return
			}
			code, _ := strconv.Atoi(status)
			if reason != "" {
				reason = "Spillway-Reason: " + reason + "\r\n"
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\n\r\n", code, http.StatusText(code), reason)
		}
	})
	return url
}

// sums checks that the causes of each outcome are all of the outcome.
func sums(t *testing.T, r *Result) {
	t.Helper()
	var sum [outcomes]uint64
	for _, c := range r.Causes {
		sum[c.Outcome] += c.Count
	}
	for o, n := range sum {
		if n != r.Outcomes[o].Count {
			t.Errorf("%v: %d by cause, %d in all", Outcome(o), n, r.Outcomes[o].Count)
		}
	}
}

func TestOutcomesAreToldByStatusAndError(t *testing.T) {
	paths := []string{"200", "201", "202", "206", "400", "401", "403", "404", "405", "409", "410", "413", "415", "422", "429", "429/quota", "500", "501", "502",
		"503", "503/queue_full", "503/memory", "504", "507", "reset", "half", "nonsense"}
	url := breaking(t)
	const times = 20
	for name, big := range map[string]bool{"raw": false, "net/http": true} {
		cfg := HTTPConfig{URLFor: func(n uint64) string { return url + "/" + paths[n%uint64(len(paths))] }}
		if big {
			cfg.Redirects = 1
		}
		h := newHTTP(t, cfg)
		r := mustRun(t, t.Context(), Config{Target: h, Closed: &Closed{Clients: 3, Requests: times * uint64(len(paths))}})
		sums(t, r)
		got := map[string]uint64{}
		for _, c := range r.Causes {
			got[fmt.Sprintf("%v %d %s", c.Outcome, c.Status, c.Text)] = c.Count
		}
		errors := 0
		for line, n := range got {
			if strings.HasPrefix(line, "error 0 ") {
				errors += int(n)
			}
		}
		if errors != 3*times {
			t.Errorf("%s: %d errors without a status, want %d: %v", name, errors, 3*times, got)
		}
		for _, line := range []string{"ok 200 ", "ok 206 ", "rejected 429 ", "rejected 429 quota", "rejected 503 ", "rejected 503 queue_full", "rejected 503 memory", "error 404 ", "error 507 "} {
			if got[line] != times {
				t.Errorf("%s: %d of %q, want %d", name, got[line], line, times)
			}
		}
		if len(r.Causes) < 27 || len(r.Causes) > 29 {
			t.Errorf("%s: %d rows: %v", name, len(r.Causes), got)
		}
		for line := range got {
			if strings.Contains(line, "127.0.0.1") {
				t.Errorf("%s: a row for each port: %q", name, line)
			}
		}
	}
}

func TestErrorsThatDifferInNumbersAreOneCauseAndRowsAreBounded(t *testing.T) {
	s, _ := newServer(t, false, func(http.ResponseWriter, *http.Request) {})
	words := func(n uint64) string { return strings.Repeat("a", int(n%70)+1) }
	for name, c := range map[string]struct {
		text func(n uint64) string
		rows int
	}{
		"numbers": {func(n uint64) string { return fmt.Sprintf("row %d is wrong", n) }, 1},
		"words":   {words, mostCauses + 1},
	} {
		h := newHTTP(t, HTTPConfig{URL: s.URL, Check: func(n uint64, _ int, _ []byte) error { return errors.New(c.text(n)) }})
		r := mustRun(t, t.Context(), Config{Target: h, Closed: &Closed{Clients: 4, Requests: 700}})
		sums(t, r)
		if len(r.Causes) != c.rows {
			t.Errorf("%s: %d rows, want %d", name, len(r.Causes), c.rows)
		}
	}
}

func TestPhasesAreThoseThatThereWere(t *testing.T) {
	for name, c := range map[string]struct {
		withTLS, http2 bool
		big            int
		want           string
	}{
		"raw":      {false, false, 0, "connect first byte"},
		"net/http": {false, false, maxRawBody, "connect first byte"},
		"TLS":      {true, false, 0, "connect tls first byte"},
		"HTTP/2":   {true, true, 0, "connect tls first byte"},
	} {
		s, connections := newServer(t, c.withTLS, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		cfg := HTTPConfig{URL: s.URL, HTTP2: c.http2, Body: []byte("x" + strings.Repeat("x", c.big))}
		if c.withTLS {
			cfg.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
		}
		r := mustRun(t, t.Context(), Config{Target: newHTTP(t, cfg), Closed: &Closed{Clients: 1, Requests: 50}})
		var names []string
		for i := range r.Phases {
			p := &r.Phases[i]
			names = append(names, p.Name)
			want := uint64(connections.Load())
			if p.Name == "first byte" {
				want = 50
			}
			if p.Took.Count() != want || p.Took.Min() <= 0 {
				t.Errorf("%s: %d times %s, want %d", name, p.Took.Count(), p.Name, want)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: phases %q, want %q", name, got, c.want)
		}
	}
}

// A generator without free files or ports once blamed the target: such requests were errors like
// those of a server.
func TestAShortageOfTheGeneratorsMachineVoidsTheResult(t *testing.T) {
	s, _ := newServer(t, false, func(http.ResponseWriter, *http.Request) {})
	wrapped := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", err)}
	}
	for want, err := range map[string]error{
		"ran out of open files: ":                      wrapped(syscall.EMFILE),
		"ran out of open files of the whole machine: ": wrapped(syscall.ENFILE),
		"ran out of local addresses and ports: ":       wrapped(syscall.EADDRNOTAVAIL),
		"ran out of buffers for sockets: ":             wrapped(syscall.ENOBUFS),
		"ulimit -n":                                    &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "dial udp 192.0.2.1:53: socket: " + syscall.EMFILE.Error(), Name: "host"}},
		"":                                             wrapped(syscall.ECONNREFUSED),
	} {
		for _, proxy := range []int{0, 1} {
			h := newHTTP(t, HTTPConfig{URL: s.URL, Redirects: proxy, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, err }})
			r := mustRun(t, t.Context(), Config{Target: h, Closed: &Closed{Clients: 2, Requests: 10}})
			void := r.Void()
			if (void == "") != (want == "") || !strings.Contains(void, want) || r.GeneratorBound != (void != "") || r.Why != void {
				t.Errorf("%v: void %q, want %q; %s", err, void, want, r.Why)
			}
			sums(t, r)
			if len(r.Causes) != 1 || r.Causes[0].Local != (want != "") {
				t.Errorf("%v: %+v", err, r.Causes)
			}
		}
	}
}

func TestRequestsGoThroughAProxyOrAUnixSocket(t *testing.T) {
	var proxied []string
	proxy, _ := newServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		proxied = append(proxied, r.URL.String()+" "+r.Header.Get("Proxy-Authorization"))
	})
	h := newHTTP(t, HTTPConfig{URL: "http://server.invalid/a", Proxy: strings.Replace(proxy.URL, "://", "://me:secret@", 1)})
	if err := h.Reach(t.Context()); err != nil {
		t.Error(err)
	}
	if o := h.Do(t.Context(), 0); o != OK || !slices.Equal(proxied, []string{"http://server.invalid/a Basic bWU6c2VjcmV0"}) {
		t.Errorf("%v, %v: %q", o, h.FirstError(), proxied)
	}

	secure, _ := newServer(t, true, func(http.ResponseWriter, *http.Request) {})
	tunnels, connections := newServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		up, err := net.Dial("tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			t.Errorf("%s %s: %v", r.Method, r.Host, err)
			return
		}
		defer up.Close()
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, c) }()
		_, _ = io.Copy(c, up)
	})
	for _, http2 := range []bool{false, true} {
		h = newHTTP(t, HTTPConfig{URL: secure.URL, Proxy: tunnels.URL, HTTP2: http2, TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
		for range 3 {
			if o := h.Do(t.Context(), 0); o != OK {
				t.Errorf("HTTPS by the proxy: %v, %v", o, h.FirstError())
			}
		}
		h.Close()
	}
	if connections.Load() != 2 {
		t.Errorf("%d connections to the proxy, want 2", connections.Load())
	}

	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip("SKIPPED: this system has no Unix sockets:", err)
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	}()
	defer l.Close()
	for _, redirects := range []int{0, 1} {
		h = newHTTP(t, HTTPConfig{
			URL: "http://server.invalid/a", Redirects: redirects, Body: []byte("x"),
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			},
			Check: func(_ uint64, _ int, body []byte) error {
				if string(body) != "server.invalid" {
					return fmt.Errorf("answered %q", body)
				}
				return nil
			},
		})
		if err := h.Reach(t.Context()); err != nil {
			t.Error(err)
		}
		for range 3 {
			if o := h.Do(t.Context(), 0); o != OK {
				t.Errorf("%v, %v", o, h.FirstError())
			}
		}
	}
}

// The most frequent answer came after so many others that it had no row.
func TestTheMostFrequentStatusHasARow(t *testing.T) {
	n := 0 // one client
	s, _ := newServer(t, false, func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.WriteHeader(max(200, 600-2*n))
	})
	r := mustRun(t, t.Context(), Config{Target: newHTTP(t, HTTPConfig{URL: s.URL}), Closed: &Closed{Clients: 1, Requests: 800}})
	sums(t, r)
	if i := slices.IndexFunc(r.Causes, func(c Cause) bool { return c.Status == 200 }); i < 0 || r.Causes[i].Count < 600 {
		t.Errorf("%+v", r.Causes)
	}
}
