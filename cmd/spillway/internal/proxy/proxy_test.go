package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/limiter"
)

// running is a proxy that serves.
type running struct {
	url, admin string
	log        *logtest.Log
	reload     chan os.Signal
	file       atomic.Pointer[string] // what is read at the next reload
	stop       context.CancelFunc
	ended      chan error
}

// start runs a proxy in front of a backend until the end of the test.
func start(t *testing.T, to, file string) *running {
	t.Helper()
	public, admin := listen(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	p := &running{url: "http://" + public.Addr().String(), admin: "http://" + admin.Addr().String(), log: &logtest.Log{}, stop: stop,
		reload: make(chan os.Signal), ended: make(chan error, 1)}
	p.file.Store(&file)
	read := func() (Config, error) {
		cfg := Config{Drain: time.Minute}
		err := cfg.read("proxy.yaml", []byte("to: "+to+"\n"+*p.file.Load()))
		return cfg, err
	}
	cfg, err := read()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		serving := &proxy{cfg: cfg, read: read, reload: p.reload, logger: slog.New(slog.NewTextHandler(p.log, nil))}
		p.ended <- serving.serve(ctx, public, admin)
		close(p.ended)
	}()
	t.Cleanup(func() {
		stop()
		await.Receive(t, "the proxy ends", p.ended)
	})
	return p
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serving is a service in each protocol without TLS.
func serving(t *testing.T, f http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func ask(t *testing.T, c *http.Client, method, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Add(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestARequestGoesOnAsItWasSent(t *testing.T) {
	backend := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Sum")
		fmt.Fprintf(w, "%s %s for=%q proto=%q host=%q deadline=%q priority=%q encoding=%q", r.Host, r.RequestURI, r.Header["X-Forwarded-For"], r.Header["X-Forwarded-Proto"],
			r.Header["X-Forwarded-Host"], r.Header["Spillway-Deadline"], r.Header["Spillway-Priority"], r.Header["Accept-Encoding"])
		w.Header().Set("Sum", "42")
	})
	p := start(t, backend+"/base", "")
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for want, header := range map[string][]string{
		`shop.example /base/a%2Fb?x=1;y=2 for=["127.0.0.1"] proto=["http"] host=["shop.example"] deadline=[] priority=[] encoding=[]`: {
			"Host", "shop.example", admissionhttp.HeaderPriority, "critical"},
		`shop.example /base/a%2Fb?x=1;y=2 for=["10.1.1.1, 127.0.0.1"] proto=["https"] host=["outside"] deadline=[] priority=[] encoding=[]`: {
			"Host", "shop.example", "X-Forwarded-For", "10.1.1.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "outside"},
	} {
		resp, body := ask(t, client, "GET", p.url+"/a%2Fb?x=1;y=2", header...)
		if body != want || resp.Trailer.Get("Sum") != "42" {
			t.Errorf("got %s, trailer %v\nwant %s", body, resp.Trailer, want)
		}
	}
}

func TestPrioritiesAndDeadlinesAreThoseOfTheFile(t *testing.T) {
	backend := serving(t, func(w http.ResponseWriter, r *http.Request) {
		within := "none"
		if ms, err := strconv.Atoi(r.Header.Get(admissionhttp.HeaderDeadline)); err == nil {
			within = map[bool]string{true: "hours", false: "minutes"}[ms > 30*60*1000]
		}
		fmt.Fprintf(w, "%s %s", within, r.Header.Get(admissionhttp.HeaderPriority))
	})
	routes := `
routes:
- match: POST /orders
  priority: critical
  deadline: 1h
- match: /orders/{id}
- match: GET /events/
  long: true
`
	for name, c := range map[string]struct{ file, method, path, want string }{
		"a route":              {routes, "POST", "/orders", "hours critical"},
		"an empty route":       {routes, "GET", "/orders/7", "none "},
		"no route":             {routes, "GET", "/other", "none "},
		"a deadline for all":   {"deadline: 9m\n" + routes, "GET", "/other", "minutes "},
		"a longer deadline":    {"deadline: 9m\n" + routes, "POST", "/orders", "hours critical"},
		"no deadline":          {"deadline: 9m\nroutes: [{match: /a, deadline: 0s}]", "GET", "/a", "none "},
		"a dry run ends none":  {"mode: dryrun\n" + routes, "POST", "/orders", "none critical"},
		"a long route":         {"deadline: 9m\n" + routes, "GET", "/events/7", "none "},
		"a trusted caller":     {"trust: [127.0.0.0/8]", "GET", "/", "none high"},
		"a caller of no trust": {"trust: [10.0.0.0/8]", "GET", "/", "none "},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, backend, c.file)
			if _, body := ask(t, http.DefaultClient, c.method, p.url+c.path, admissionhttp.HeaderPriority, "high"); body != c.want {
				t.Errorf("got %q, want %q", body, c.want)
			}
		})
	}
}

// An unread stream, an echo over a websocket's upgrade and both directions of HTTP/2 at once go through.
func TestStreamsGoThroughInBothDirections(t *testing.T) {
	backend := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/socket":
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			_, _ = io.Copy(conn, rw)
		case "/upgrade":
			w.Header().Set("Asked", r.Header.Get("Upgrade")+r.Header.Get("HTTP2-Settings"))
		case "/both":
			c := http.NewResponseController(w)
			_ = c.EnableFullDuplex()
			lines := bufio.NewScanner(r.Body)
			w.WriteHeader(200)
			_ = c.Flush()
			for lines.Scan() {
				fmt.Fprintln(w, lines.Text())
				_ = c.Flush()
			}
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		}
	})
	p := start(t, backend, "")

	resp, err := http.Get(p.url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "data: 1\n" {
		t.Errorf("events: %q, %v", line, err)
	}

	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	_, _ = io.WriteString(conn, "ping\n")
	if line, err := in.ReadString('\n'); line != "ping\n" {
		t.Errorf("socket: %q, %v", line, err)
	}

	upgrade, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer upgrade.Close()
	_, _ = io.WriteString(upgrade, "GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(upgrade), nil); err != nil || resp.Header.Get("Asked") != "" || resp.StatusCode != 200 {
		t.Errorf("a tunnel past the limiter: %v, %v", resp, err)
	}

	h2 := start(t, strings.Replace(backend, "http:", "h2c:", 1), "")
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	body, out := io.Pipe()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", h2.url+"/both", body)
	both, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer both.Body.Close()
	answers := bufio.NewReader(both.Body)
	for _, want := range []string{"one\n", "two\n"} {
		_, _ = io.WriteString(out, want)
		if line, err := answers.ReadString('\n'); line != want {
			t.Errorf("both: %q, %v", line, err)
		}
	}
	out.Close()
	if _, err := io.Copy(io.Discard, answers); err != nil || both.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("the end of both: %v, %v", err, both.Trailer)
	}
}

// What operators see and switch: a dry run passes on what enforcing refuses.
func TestTheModeIsSwitchedWhileItServes(t *testing.T) {
	p := start(t, serving(t, func(http.ResponseWriter, *http.Request) {}), "mode: dryrun")
	passed := "Spillway-Deadline" // which has ended before the request came
	if resp, _ := ask(t, http.DefaultClient, "GET", p.url, passed, "0"); resp.StatusCode != 200 {
		t.Errorf("a dry run answers %d", resp.StatusCode)
	}
	if resp, body := ask(t, http.DefaultClient, "PUT", p.admin+"/mode/full"); resp.StatusCode != 400 || !strings.Contains(body, "enforce") {
		t.Errorf("a wrong mode: %d %s", resp.StatusCode, body)
	}
	if resp, _ := ask(t, http.DefaultClient, "PUT", p.admin+"/mode/enforce"); resp.StatusCode != 204 {
		t.Errorf("a mode: %d", resp.StatusCode)
	}
	resp, _ := ask(t, http.DefaultClient, "GET", p.url, passed, "0")
	if resp.StatusCode != 503 || resp.Header.Get(admissionhttp.HeaderReason) != "deadline_too_close" {
		t.Errorf("enforcing: %d %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := ask(t, http.DefaultClient, "GET", p.admin+"/readyzz"); resp.StatusCode != 404 {
		t.Errorf("a probe with a typo: %d", resp.StatusCode)
	}
	for path, want := range map[string]string{
		"/mode": "enforce", "/": "<title>", "/livez": "", "/readyz": "", "/metrics": `spillway_requests_total`, "/?format=json": `"deadline_too_close"`,
	} {
		if resp, body := ask(t, http.DefaultClient, "GET", p.admin+path); resp.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.300s", path, resp.StatusCode, body)
		}
	}
}

func TestAFileIsReadAgain(t *testing.T) {
	p := start(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get(admissionhttp.HeaderPriority))
	}), "")
	for _, c := range []struct{ file, want, log string }{
		{"routes: [{match: /a, priority: low}]", "low", "read again"},
		{"routes: [{match: a}]", "low", "not read again"},
		{"routes: [{match: /a, priority: high}]", "high", "read again"},
	} {
		p.file.Store(&c.file)
		p.reload <- syscall.SIGHUP
		await.True(t, "it is read", func() bool {
			_, body := ask(t, http.DefaultClient, "GET", p.url+"/a")
			return body == c.want && strings.Contains(p.log.String(), c.log)
		})
	}
}

// Only refusals that no route of the file matched were logged.
func TestARefusalOnARouteIsLogged(t *testing.T) {
	p := start(t, serving(t, func(http.ResponseWriter, *http.Request) {}), "routes: [{match: /a, deadline: 1h}, {match: /b, long: true}]")
	for n, path := range []string{"/a", "/b"} {
		if resp, _ := ask(t, http.DefaultClient, "GET", p.url+path, admissionhttp.HeaderDeadline, "0"); resp.StatusCode != 503 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		await.True(t, "it is logged", func() bool { return strings.Count(p.log.String(), "deadline_too_close") > n })
	}
}

func TestAServiceThatDoesNotAnswerIsNoRefusal(t *testing.T) {
	gone := listen(t)
	_ = gone.Close()
	p := start(t, "http://"+gone.Addr().String(), "")
	resp, body := ask(t, http.DefaultClient, "GET", p.url)
	if resp.StatusCode != 502 || resp.Header.Get("Retry-After") != "" || !strings.Contains(body, "did not answer") || strings.Contains(body, gone.Addr().String()) {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	if log := p.log.String(); !strings.Contains(log, "connection refused") {
		t.Errorf("the log: %s", log)
	}

	release := make(chan struct{})
	defer close(release)
	p = start(t, serving(t, func(http.ResponseWriter, *http.Request) { <-release }), "deadline: 30ms")
	if resp, _ := ask(t, http.DefaultClient, "GET", p.url); resp.StatusCode != 504 {
		t.Errorf("a service that hangs: %d", resp.StatusCode)
	}
}

// At a stop the readiness goes first, streams end, and what was admitted is answered.
func TestAStopAnswersWhatWasAdmitted(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	p := start(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/poll" {
			began <- struct{}{}
			<-r.Context().Done()
			return
		}
		if r.URL.Path == "/events" {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_ = http.NewResponseController(w).Flush()
			began <- struct{}{}
			<-r.Context().Done()
			return
		}
		began <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "whole")
	}), "routes:\n- {match: GET /poll, long: true}")
	type answer struct {
		status int
		body   string
	}
	get := func(path string, into chan<- answer) {
		r, _ := http.NewRequestWithContext(context.Background(), "GET", p.url+path, nil)
		r.Header.Set("Accept", "application/json, text/event-stream") // which says nothing of the answer
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			into <- answer{}
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		into <- answer{resp.StatusCode, string(body)}
	}
	poll, work, events := make(chan answer, 1), make(chan answer, 1), make(chan answer, 1)
	go get("/events", events)
	await.Receive(t, "the events run", began)
	go get("/poll", poll)
	await.Receive(t, "the poll runs", began)
	go get("/work", work)
	await.Receive(t, "the work runs", began)
	p.stop()
	await.Receive(t, "the events end", events)
	if got := await.Receive(t, "the poll ends", poll); got.status != 502 {
		t.Errorf("the poll: %v", got)
	}
	await.True(t, "it is not ready", func() bool {
		resp, err := http.Get(p.admin + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == 503
	})
	close(release)
	if got := await.Receive(t, "the work ends", work); got.body != "whole" {
		t.Errorf("the work: %v", got)
	}
	if err := await.Receive(t, "the proxy ends", p.ended); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfAFileTellTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"to: ftp://x":                           `f.yaml:1: "ftp://x": want http://, https:// or h2c://`,
		"to: http://x/?a=b":                     `f.yaml:1: "http://x/?a=b": want a scheme, a host and perhaps a path`,
		"too: http://x":                         "f.yaml:1: field too not found",
		"deadline: 3":                           "f.yaml:1: time: missing unit",
		"deadline: -3s":                         "f.yaml:1: a time cannot be negative",
		"mode: on":                              `f.yaml:1: limiter: unknown mode "on"`,
		"\nprobes: [x]":                         `f.yaml:2: "x": a path of a health check begins with a slash`,
		"trust: [10.0.0.1]":                     `f.yaml:1: "10.0.0.1" is no network`,
		"routes:\n- {match: GET /a, prio: low}": "f.yaml:2: field prio not found",
		"routes:\n- {match: /, priority: lowest}":          `f.yaml:2: unknown priority "lowest": use low, normal, high or critical`,
		"routes:\n- priority: low":                         "f.yaml:2: a route needs a match",
		"routes:\n- match: GET x":                          `f.yaml:2: parsing "GET x"`,
		"routes:\n- {match: /a, long: true, deadline: 1s}": "f.yaml:2: /a is long, and has a deadline",
		"routes:\n- match: /a/{x}/b\n- match: /a/c/{y}":    `f.yaml:3: pattern "/a/c/{y}" conflicts with pattern "/a/{x}/b"`,
		"deadline: x\nmode: y":                             "f.yaml:2: limiter: unknown mode",
		"routes:\n-\n- match: GET /a":                      "f.yaml:2: a route needs a match",
		"to: http://x\n---\nmode: off":                     "f.yaml: has more than one document",
		"routes: [{match: post /a}]":                       "f.yaml:1: post /a: a method is in capitals",
		"to: http://x:99999":                               "a port is a number",
		"routes: {":                                        "f.yaml:1: did not find expected",
	} {
		cfg := Config{}
		if err := cfg.read("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

func TestTheExampleSaysWhatAFileMaySay(t *testing.T) {
	cfg := Config{}
	if err := cfg.read("example", []byte(Example)); err != nil {
		t.Fatal(err)
	}
	if cfg.To.Host != "127.0.0.1:8081" || cfg.Mode != limiter.DryRun || cfg.Deadline != 2*time.Second || cfg.Drain != 20*time.Second || len(cfg.Probes)+len(cfg.Trust) != 2 || len(cfg.Routes) != 4 {
		t.Errorf("%+v", cfg)
	}
	var before Config
	if err := before.read("nothing", nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}
