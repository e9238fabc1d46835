package admissionhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// wire is a connection that keeps back what net/http's writers keep back. It is the writer, the body
// and the conn.
type wire struct {
	header   http.Header
	kept     *bufio.Writer
	sent     bytes.Buffer
	on       func(what string) // the client takes or sends something
	body     *strings.Reader
	deadline map[string]time.Time
}

func newWire(size int, on func(string)) *wire {
	c := &wire{header: http.Header{}, on: on, deadline: map[string]time.Time{}}
	c.kept = bufio.NewWriterSize(connection{c}, size)
	return c
}

type connection struct{ of *wire }

func (c connection) Write(p []byte) (int, error) {
	c.of.on("write")
	return c.of.sent.Write(p)
}

func (c *wire) Read(p []byte) (int, error) {
	if c.body.Len() > 0 {
		c.on("read")
	}
	return c.body.Read(p)
}
func (c *wire) Close() error        { return nil }
func (c *wire) Header() http.Header { return c.header }
func (c *wire) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols {
		c.on("inform")
	}
}
func (c *wire) Write(p []byte) (int, error)       { return c.kept.Write(p) }
func (c *wire) WriteString(s string) (int, error) { return c.kept.WriteString(s) }
func (c *wire) Flush()                            { _ = c.FlushError() }
func (c *wire) FlushError() error {
	c.on("flush")
	return c.kept.Flush()
}
func (c *wire) CloseNotify() <-chan bool           { return nil }
func (c *wire) SetReadDeadline(t time.Time) error  { c.deadline["read"] = t; return nil }
func (c *wire) SetWriteDeadline(t time.Time) error { c.deadline["write"] = t; return nil }

// wire1 is a wire of HTTP/1, wire2 one of HTTP/2.
type (
	wire1 struct{ *wire }
	wire2 struct{ *wire }
)

func (c wire1) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }
func (c wire1) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(struct{ io.Writer }{c.kept}, io.LimitReader(src, 512))
	if err != nil || n < 512 {
		return n, err
	}
	if err := c.FlushError(); err != nil {
		return n, err
	}
	m, err := io.Copy(struct{ io.Writer }{connection{c.wire}}, src)
	return n + m, err
}
func (c wire2) Push(string, *http.PushOptions) error {
	c.on("push")
	return nil
}

// must returns v, and panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func guarded(t testing.TB, cfg Config, h http.Handler) http.Handler {
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(100)}))
	cfg.Limiter = lim
	protect := must(New(cfg))
	t.Cleanup(func() {
		if s := lim.Stats(); s.InFlight != 0 || s.LongInFlight != 0 || s.Admitted != s.Completed {
			t.Errorf("%+v", s)
		}
	})
	return protect(h)
}

// workOf finds the work behind the handler's writer.
func workOf(w http.ResponseWriter) *work {
	switch w := w.(type) {
	case http1Work:
		return w.work
	case http2Work:
		return w.work
	}
	return w.(*work)
}

// FuzzClient interleaves all that a handler can do with its client. Nothing reaches the connection
// outside of a wait, the source of ReadFrom is read outside of one, what is sent is what was written,
// and no wait or watch is left over.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{"", "r", "wwwwwwww", "WsWsWs", "fWfW", "LsL", "lF", "rWrW", "h", "Wh", "Wp", "Wa", "Wd", "i", "u", "ssssSSSSk", "rrrrrfrr", "LLFFlWWf", "0SSSSSSSSSS000000SSS"} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	file := filepath.Join(f.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("f"), 3*piece+7), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, steps []byte, h2 bool) {
		if len(steps) > 50 {
			steps = steps[:50]
		}
		var a *work
		size := keptByHTTP1
		if h2 {
			size = keptByHTTP2
		}
		c := newWire(size, func(what string) {
			on := &a.writing
			switch what {
			case "inform", "push":
				return
			case "read":
				on = &a.reading
			}
			if on.Load()&goingOn == 0 {
				t.Errorf("%s outside of a wait", what)
			}
		})
		c.body = strings.NewReader(strings.Repeat("b", 5000))
		var want bytes.Buffer
		hijacked := false
		handler := guarded(t, Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a = workOf(w)
			control := http.NewResponseController(w)
			for i, step := range steps {
				n := 1 << (i % 18)
				text := strings.Repeat(string(rune('a'+i%26)), n)
				var err error
				switch step {
				case 'r':
					_, err = io.ReadFull(r.Body, make([]byte, min(n, 3000)))
					if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
						err = nil
					}
				case 'w', 'W':
					_, err = w.Write([]byte(text))
					want.WriteString(text)
				case 's', 'S':
					_, err = io.WriteString(w, text)
					want.WriteString(text)
				case 'f':
					err = control.Flush()
				case 'L', 'l':
					_, err = io.Copy(w, readerOnly{strings.NewReader(text), a})
					want.WriteString(text)
				case 'F':
					var from *os.File
					if from, err = os.Open(file); err == nil {
						var copied int64
						limited := &io.LimitedReader{R: from, N: int64(n)}
						copied, err = io.Copy(w, limited)
						want.WriteString(strings.Repeat("f", int(copied)))
						if whole := int64(3*piece + 7); copied != min(whole, int64(n)) {
							t.Errorf("copied %d of %d", copied, n)
						}
						_ = from.Close()
					}
				case 'h':
					if h, ok := w.(http.Hijacker); ok {
						_, _, err = h.Hijack()
						hijacked = true
					}
				case 'u':
					if p, ok := w.(http.Pusher); ok {
						err = p.Push("/", nil)
					}
				case 'i':
					w.WriteHeader(http.StatusEarlyHints)
				case 'k':
					w.WriteHeader(200 + n%400)
				case 'd':
					err = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Unix(1, 0)))
				case 'x':
					a.guard.clients.sweep()
				case 'p':
					panic("a bug")
				case 'a':
					panic(http.ErrAbortHandler)
				}
				if err != nil {
					t.Errorf("%c: %v", step, err)
				}
			}
		}))
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body = c
		var w http.ResponseWriter = wire1{c}
		if h2 {
			w = wire2{c}
		}
		func() {
			defer func() { _ = recover() }()
			handler.ServeHTTP(w, r)
		}()
		if r.Body != c {
			t.Error("code outside has another body")
		}
		if got := a.written; got != int64(want.Len()) {
			t.Errorf("counted %d bytes, written %d", got, want.Len())
		}
		c.on = func(string) {}
		_ = c.kept.Flush()
		if !hijacked && !bytes.Equal(c.sent.Bytes(), want.Bytes()) {
			t.Errorf("sent %d bytes of %d, or others", c.sent.Len(), want.Len())
		}
		if a.reading.Load()&goingOn != 0 || a.writing.Load()&goingOn != 0 || a.guard.clients.first != nil || !a.left.Load() {
			t.Errorf("a wait is left over: %x %x %v", a.reading.Load(), a.writing.Load(), a.guard.clients.first != nil)
		}
	})
}

// readerOnly is a source of other than a file: it takes the handler's time.
type readerOnly struct {
	io.Reader
	work *work
}

func (r readerOnly) Read(p []byte) (int, error) {
	if r.work.writing.Load()&goingOn != 0 {
		return 0, errors.New("the source is read in the client's time")
	}
	return r.Reader.Read(p)
}

// What net/http keeps back needs no clock.
func TestAShortAnswerWaitsForNobody(t *testing.T) {
	waits := 0
	for name, c := range map[string]struct{ size, write, want int }{
		"HTTP/1, short": {keptByHTTP1, keptByHTTP1, 0},
		"HTTP/1, long":  {keptByHTTP1, keptByHTTP1 + 1, 1},
		"HTTP/2, short": {keptByHTTP2, keptByHTTP2, 0},
		"HTTP/2, long":  {keptByHTTP2, keptByHTTP2 + 1, 1},
	} {
		var low http.ResponseWriter
		body := &wire{on: func(string) {}, body: strings.NewReader("")}
		in := newWire(c.size, func(string) {})
		if low = (wire1{in}); c.size == keptByHTTP2 {
			low = wire2{in}
		}
		p := make([]byte, c.write/2)
		handler := guarded(t, Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(p)
			_, _ = w.Write(p[:c.write-c.write/2-1])
			_, _ = io.WriteString(w, "x")
			waits = int(workOf(w).writing.Load() / (2 * oneMove))
			_, _ = r.Body.Read(p)
		}))
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body = body
		handler.ServeHTTP(low, r)
		if waits != c.want {
			t.Errorf("%s: %d waits, want %d", name, waits, c.want)
		}
	}
}

// A client that stands still is gone after a timeout, and one that moves is not, however long the
// handler takes between.
func TestAClientThatStandsStillIsCutOff(t *testing.T) {
	const timeout = 20 * time.Second
	type step struct {
		does  string
		lasts time.Duration
	}
	past := time.Unix(1, 0)
	for name, c := range map[string]struct {
		steps   []step
		mode    limiter.Mode
		timeout time.Duration
		read    time.Time
		write   time.Time
	}{
		"sends nothing":        {steps: []step{{"read", timeout*5/4 + 1}}, read: past},
		"and takes nothing":    {steps: []step{{"read", 2 * timeout}}, read: past, write: past},
		"takes nothing":        {steps: []step{{"write", 2 * timeout}}, read: past, write: past},
		"not yet":              {steps: []step{{"read", timeout - 1}, {"write", timeout - 1}}},
		"a dry run":            {steps: []step{{"read", 2 * timeout}}, mode: limiter.DryRun},
		"no timeout":           {steps: []step{{"read", time.Hour}}, timeout: -1},
		"the handler computes": {steps: []step{{"read", 0}, {"write", 0}, {"compute", time.Hour}}},
		"waits for the answer": {steps: []step{{"write", 0}, {"read", time.Hour}}},
		"slow":                 {steps: slices.Repeat([]step{{"read", timeout * 3 / 4}}, 20)},
		"takes it slowly":      {steps: []step{{"write slowly", timeout * 3 / 4}}},
		"hijacked":             {steps: []step{{"write", 0}, {"hijack", 0}, {"write", time.Hour}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := must(limiter.New(limiter.Config{Mode: c.mode}))
				if c.timeout == 0 {
					c.timeout = timeout
				}
				protect := must(New(Config{Limiter: lim, ClientTimeout: c.timeout}))
				in := newWire(1, func(string) {})
				protect(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
					w := workOf(writer)
					for _, s := range c.steps {
						switch s.does {
						case "read":
							w.wait(&w.reading)
							time.Sleep(s.lasts)
							w.goOn(&w.reading)
						case "write":
							w.wait(&w.writing)
							time.Sleep(s.lasts)
							w.goOn(&w.writing)
						case "write slowly":
							w.wait(&w.writing)
							for range 20 {
								time.Sleep(s.lasts)
								w.writing.Add(oneMove)
							}
							w.goOn(&w.writing)
						case "compute":
							time.Sleep(s.lasts)
						case "hijack":
							_, _, _ = w.hijack()
						}
					}
				})).ServeHTTP(wire1{in}, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
				if in.deadline["read"] != c.read || in.deadline["write"] != c.write {
					t.Errorf("deadlines %v", in.deadline)
				}
			})
		})
	}
}

// The rest of a long answer that net/http writes after the handler has returned has a bound, but never a
// later one than another bound.
func TestTheRestOfAnAnswerHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := time.Now().Add(time.Hour)
		for name, c := range map[string]struct {
			server  *http.Server
			handler http.HandlerFunc
			want    time.Time
		}{
			"long":          {&http.Server{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2*piece)) }, time.Now().Add(usualClientTimeout)},
			"short":         {&http.Server{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 500)) }, time.Time{}},
			"of the server": {&http.Server{WriteTimeout: time.Hour}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2*piece)) }, time.Time{}},
			"without one":   {nil, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2*piece)) }, time.Time{}},
			"of the handler": {&http.Server{}, func(w http.ResponseWriter, _ *http.Request) {
				_ = http.NewResponseController(w).SetWriteDeadline(own)
				_, _ = w.Write(make([]byte, 2*piece))
			}, own},
			"given up by it": {&http.Server{}, func(w http.ResponseWriter, _ *http.Request) {
				c := http.NewResponseController(w)
				_ = c.SetWriteDeadline(own)
				_ = c.SetWriteDeadline(time.Time{})
				_, _ = w.Write(make([]byte, 2*piece))
			}, time.Now().Add(usualClientTimeout)},
		} {
			in := newWire(keptByHTTP1, func(string) {})
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if c.server != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, c.server))
			}
			guarded(t, Config{}, c.handler).ServeHTTP(wire1{in}, r)
			if got := in.deadline["write"]; !got.Equal(c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	})
}

// An answer that a deadline of the middleware ends in its middle once looked complete: net/http
// ended the body of a handler that returned early.
func TestAnAnswerThatADeadlineCutsIsAborted(t *testing.T) {
	const limit = 5 * time.Second
	part := make([]byte, 5000)
	untilEnd := func(r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		method  string
		wrapped bool // by a middleware outside
		want    bool
	}{
		"in its middle": {handler: func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(part); untilEnd(r) }, want: true},
		"after a flush": {handler: func(w http.ResponseWriter, r *http.Request) { _ = http.NewResponseController(w).Flush(); untilEnd(r) }, want: true},
		"then an error": {handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(part)
			untilEnd(r)
			http.Error(w, "late", http.StatusGatewayTimeout)
		}, want: true},
		"with a length": {handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10000")
			_, _ = w.Write(part)
			untilEnd(r)
			_, _ = w.Write(part[1:])
		}, want: true},
		"by an encoder": {handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(part)
			untilEnd(r)
			_, _ = w.Write(part[:10])
		}, want: true},
		"its length is met": {handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5000")
			_, _ = w.Write(part)
			untilEnd(r)
		}},
		"it goes on": {handler: func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(part); untilEnd(r); _, _ = w.Write(part) }},
		"begins later": {handler: func(w http.ResponseWriter, r *http.Request) {
			untilEnd(r)
			http.Error(w, "late", http.StatusGatewayTimeout)
		}},
		"begins later, behind a writer that keeps nothing": {wrapped: true, handler: func(w http.ResponseWriter, r *http.Request) {
			untilEnd(r)
			http.Error(w, "late", http.StatusGatewayTimeout)
		}},
		"is refused later, behind a writer that keeps nothing": {wrapped: true, handler: func(w http.ResponseWriter, r *http.Request) {
			untilEnd(r)
			Refuse(w, r, r.Context().Err())
		}},
		"nothing was sent": {handler: func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(part[:100]); untilEnd(r) }},
		"in time":          {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(part) }},
		"has no body":      {method: http.MethodHead, handler: func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(part); untilEnd(r) }},
		"events": {handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			untilEnd(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := guarded(t, Config{Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: limit}}, c.handler)
				if c.method == "" {
					c.method = http.MethodGet
				}
				r := httptest.NewRequest(c.method, "/", nil)
				r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{}))
				var aborted any
				func() {
					defer func() { aborted = recover() }()
					var w http.ResponseWriter = wire1{newWire(keptByHTTP1, func(string) {})}
					if c.wrapped {
						w = struct{ http.ResponseWriter }{w}
					}
					handler.ServeHTTP(w, r)
				}()
				if (aborted == http.ErrAbortHandler) != c.want || aborted != nil && !c.want {
					t.Errorf("aborted: %v", aborted)
				}
			})
		})
	}
}

// A body that is read on after the handler has returned sets nothing in motion.
func TestABodyIsReadOnAfterItsHandler(t *testing.T) {
	var kept io.Reader
	var a *work
	in := newWire(keptByHTTP1, func(string) {})
	in.body = strings.NewReader("four")
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Body = in
	guarded(t, Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, kept = workOf(w), r.Body
	})).ServeHTTP(wire1{in}, r)
	if all, err := io.ReadAll(kept); string(all) != "four" || err != nil {
		t.Errorf("%q %v", all, err)
	}
	if a.guard.clients.first != nil || len(in.deadline) != 0 {
		t.Errorf("watched: %v, deadlines %v", a.guard.clients.first != nil, in.deadline)
	}
}

// http.NoBody has a meaning for net/http's client, in a proxy.
func TestNoBodyStaysNoBody(t *testing.T) {
	var seen []bool
	h := guarded(t, Config{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Body == http.NoBody, r.Body == nil)
	}))
	for _, body := range []io.ReadCloser{http.NoBody, nil} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Body = body
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if !slices.Equal(seen, []bool{true, false, false, true}) {
		t.Errorf("%v", seen)
	}
}
