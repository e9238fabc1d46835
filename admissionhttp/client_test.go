package admissionhttp_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// few is a limiter of two slots, with a queue. Nobody is refused for a long wait, which a busy machine
// may cause.
func few(t testing.TB) *limiter.Limiter {
	t.Helper()
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(2), MaxWait: limiter.NoMaxWait}))
	return lim
}

// both lets a server speak HTTP/1 and HTTP/2 without TLS.
func both(s *httptest.Server) {
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
}

// dial connects with a small buffer for what comes, and sends text.
func dial(t *testing.T, s *httptest.Server, text string) net.Conn {
	t.Helper()
	conn := must(net.Dial("tcp", s.Listener.Addr().String()))
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	must(io.WriteString(conn, text))
	return conn
}

// Frames of HTTP/2, as far as the tests need them.
const (
	frameData, frameHeaders, frameReset, frameSettings = 0, 1, 3, 4
	endStream, endHeaders, settingWindow               = 1, 4, 4
)

func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = append(head, flags)
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// preface begins a connection of HTTP/2 whose streams take window bytes each.
func preface(window uint32) string {
	setting := binary.BigEndian.AppendUint32([]byte{0, settingWindow}, window)
	return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(frameSettings, 0, 0, string(setting))
}

// ask2 is a request of HTTP/2 for path, on the nth stream of its connection.
func ask2(n int, method, path string, flags byte) string {
	literal := func(name byte, value string) string { return string([]byte{name, byte(len(value))}) + value }
	return frame(frameHeaders, endHeaders|flags, uint32(2*n+1), literal(2, method)+"\x86"+literal(4, path)+literal(1, "x"))
}

// next reads frames until one of the kind, and returns it.
func next(t *testing.T, from io.Reader, kind byte) (stream uint32, flags byte) {
	t.Helper()
	for {
		var head [9]byte
		must(io.ReadFull(from, head[:]))
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		must(io.CopyN(io.Discard, from, size))
		if head[3] == kind {
			return binary.BigEndian.Uint32(head[5:]), head[4]
		}
	}
}

// large is more than the buffers of a loopback connection take.
const large = 12 << 20

// service has a handler for each way to wait for a client.
func service(t *testing.T, proxied string) *http.ServeMux {
	t.Helper()
	file := filepath.Join(t.TempDir(), "large")
	check(t, os.WriteFile(file, nil, 0o600))
	check(t, os.Truncate(file, large))
	mux := http.NewServeMux()
	mux.HandleFunc("/quick", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "quick") })
	mux.HandleFunc("/json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 8<<10)) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, large)) })
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", large)) })
	mux.HandleFunc("/flushed", func(w http.ResponseWriter, _ *http.Request) {
		for range large / 1000 {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	mux.HandleFunc("/copied", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(zeros{}, large)) })
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, "cut", http.StatusBadRequest)
		}
	})
	mux.HandleFunc("/closed", func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() })
	mux.Handle("/timed", http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), time.Hour, ""))
	mux.HandleFunc("/form", func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseMultipartForm(1 << 10) })
	mux.HandleFunc("/poll", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if proxied != "" {
		target := must(url.Parse(proxied))
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ErrorLog = quiet
		proxy.Transport = &http.Transport{DisableKeepAlives: true}
		mux.Handle("/proxied/", http.StripPrefix("/proxied", proxy))
	}
	return mux
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// While clients hold requests by not reading or not sending, others are answered. Such clients once
// held all slots, without end.
func TestClientsThatStandStillHoldNoSlot(t *testing.T) {
	const holders = 6 // with two slots
	get := func(path string) func(int) string {
		return func(int) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	}
	post := func(path, headers, begin string) func(int) string {
		return func(int) string { return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n\r\n" + begin }
	}
	for name, c := range map[string]struct {
		text func(n int) string // of the nth connection
		long bool               // named by Config.Long
		h2   bool               // all on one connection
	}{
		"JSON, HTTP/2, window 0":    {text: func(n int) string { return ask2(n, "GET", "/json", endStream) }, h2: true},
		"flushes, HTTP/2, window 0": {text: func(n int) string { return ask2(n, "GET", "/flushed", endStream) }, h2: true},
		"a body, HTTP/2":            {text: func(n int) string { return ask2(n, "POST", "/upload", 0) + frame(frameData, 0, uint32(2*n+1), "3 b") }, h2: true},
		"a write":                   {text: get("/large")},
		"a text":                    {text: get("/text")},
		"flushes":                   {text: get("/flushed")},
		"a file":                    {text: get("/file")},
		"a copy":                    {text: get("/copied")},
		"three of nine bytes":       {text: post("/upload", "Content-Length: 9", "123")},
		"a body that is closed":     {text: post("/closed", "Content-Length: 9", "123")},
		"chunks":                    {text: post("/upload", "Transfer-Encoding: chunked", "3\r\n123\r\n")},
		"100-continue":              {text: post("/upload", "Expect: 100-continue\r\nContent-Length: 9", "")},
		"in a TimeoutHandler":       {text: post("/timed", "Content-Length: 9", "123")},
		"a form":                    {text: post("/form", "Content-Length: 99\r\nContent-Type: multipart/form-data; boundary=x", "--x\r\n")},
		"a proxied body":            {text: post("/proxied/upload", "Content-Length: 9", "123")},
		"a proxied answer":          {text: get("/proxied/large")},
		"long polls":                {text: get("/poll"), long: true},
		"long uploads":              {text: post("/upload", "Content-Length: 9", "123"), long: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			backend := httptest.NewServer(service(t, ""))
			lim := few(t)
			var began atomic.Int64
			mux := service(t, backend.URL)
			protect := middleware(t, admissionhttp.Config{
				Limiter: lim, FairShares: name == "a file", ClientTimeout: time.Hour, // longer than the test
				Long: func(r *http.Request) bool { return c.long && r.URL.Path != "/quick" },
			})
			s := serve(t, http.MaxBytesHandler(protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/quick" {
					began.Add(1)
				}
				mux.ServeHTTP(w, r)
			})), 1<<20), both)
			var conns []net.Conn
			if c.h2 {
				conns = append(conns, dial(t, s, preface(0)))
			}
			for n := range holders {
				if c.h2 {
					_, _ = io.WriteString(conns[0], c.text(n))
				} else {
					conns = append(conns, dial(t, s, c.text(n)))
				}
			}
			await.True(t, "all holders run", func() bool { return began.Load() == holders })
			client := &http.Client{Transport: &http.Transport{}}
			for range 12 {
				if status := fetch(t, client, s.URL+"/quick"); status != 200 {
					t.Errorf("another caller got %d", status)
				}
			}
			if st := lim.Stats(); c.long && st.LongInFlight != holders || st.Completed != 12 {
				t.Errorf("%d long, %d completed", st.LongInFlight, st.Completed)
			}
			for _, conn := range conns {
				_ = conn.Close()
			}
			await.True(t, "the slots come back", func() bool {
				st := lim.Stats()
				return st.InFlight == 0 && st.LongInFlight == 0 && st.Admitted == st.Completed
			})
			client.CloseIdleConnections()
			s.Close()
			backend.CloseClientConnections()
			backend.Close()
			await.True(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// A client that stands still for ClientTimeout is gone: its handler ends, and no goroutine is left,
// although the client keeps the connection. A client that moves is served.
func TestAClientThatStandsStillIsGone(t *testing.T) {
	const timeout = 40 * time.Millisecond
	for name, c := range map[string]struct {
		text string
		h2   bool
	}{
		"sends nothing":         {text: "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123"},
		"sends nothing, closed": {text: "POST /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123"},
		"takes nothing":         {text: "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"},
		"takes nothing, flush":  {text: "GET /flushed HTTP/1.1\r\nHost: x\r\n\r\n"},
		"takes no file":         {text: "GET /file HTTP/1.1\r\nHost: x\r\n\r\n"},
		"sends nothing, HTTP/2": {text: preface(0) + ask2(0, "POST", "/upload", 0), h2: true},
		"takes nothing, HTTP/2": {text: preface(0) + ask2(0, "GET", "/large", endStream), h2: true},
	} {
		t.Run(name, func(t *testing.T) {
			lim := few(t)
			var log logtest.Log
			mux := service(t, "")
			ended := make(chan struct{})
			protect := middleware(t, admissionhttp.Config{Limiter: lim, ClientTimeout: timeout, Logger: log.Logger()})
			s := serve(t, protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				mux.ServeHTTP(w, r)
			})), both)
			before := runtime.NumGoroutine()
			conn := dial(t, s, c.text)
			await.Receive(t, "the handler ends", ended)
			switch {
			case !c.h2:
				await.True(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
			case strings.Contains(name, "takes"):
				next(t, conn, frameReset)
			}
			await.True(t, "the slot comes back", func() bool { return lim.Stats().InFlight == 0 })
			await.True(t, "the log says it", func() bool { return strings.Contains(log.String(), "requests=1") })
		})
	}
}

// pipes is a listener of connections in memory, for virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// virtually serves what handler returns in virtual time, and gives ask a client and the URL.
func virtually(t *testing.T, h2 bool, handler func() http.Handler, ask func(t *testing.T, c *http.Client, url string)) {
	synctest.Test(t, func(t *testing.T) {
		listener := make(pipes)
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!h2)
		protocols.SetUnencryptedHTTP2(h2)
		s := &http.Server{Handler: handler(), ErrorLog: quiet, Protocols: protocols}
		served := make(chan error)
		go func() { served <- s.Serve(listener) }()
		transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			listener <- theirs
			return ours, nil
		}}
		ask(t, &http.Client{Transport: transport}, "http://service")
		transport.CloseIdleConnections()
		_ = s.Close()
		<-served
		synctest.Wait()
		time.Sleep(time.Hour) // the last sweep
	})
}

// The next requests of a connection are not hit by a deadline of one before, and a client that only
// waits is not taken to be gone.
func TestAKeptConnectionKeepsNoDeadline(t *testing.T) {
	const size = 64 << 10
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			virtually(t, h2, func() http.Handler {
				mux := http.NewServeMux()
				mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
					all, _ := io.ReadAll(r.Body)
					_, _ = w.Write(all)
				})
				mux.HandleFunc("/later", func(w http.ResponseWriter, r *http.Request) {
					all, err := io.ReadAll(io.LimitReader(r.Body, 10))
					for range 3 {
						time.Sleep(time.Hour)
						_, _ = w.Write(make([]byte, size))
					}
					if len(all) != 10 || err != nil || r.Context().Err() != nil {
						t.Errorf("%d bytes, %v, %v", len(all), err, r.Context().Err())
					}
				})
				return middleware(t, admissionhttp.Config{})(mux)
			}, func(t *testing.T, c *http.Client, url string) {
				for _, path := range []string{"/echo", "/echo", "/later", "/echo"} {
					resp := must(c.Post(url+path, "text/plain", strings.NewReader(strings.Repeat("x", size))))
					if n, err := io.Copy(io.Discard, resp.Body); n < size || err != nil {
						t.Errorf("%s: %d %v", path, n, err)
					}
					_ = resp.Body.Close()
					time.Sleep(time.Hour)
				}
			})
		})
	}
}

// An answer that a deadline ended in its middle once had a proper end: its client took a part for the
// whole.
func TestAnAnswerThatADeadlineCutsLooksCut(t *testing.T) {
	const part = 8 << 10
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			var ends *[]limit.Outcome
			virtually(t, h2, func() http.Handler {
				var lim *limiter.Limiter
				lim, ends = taught(t, 1)
				return middleware(t, admissionhttp.Config{
					Limiter: lim, Logger: log.Logger(),
					Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: 5 * time.Second},
				})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = w.Write(make([]byte, part))
					if r.URL.Path == "/cut" {
						<-r.Context().Done()
					}
				}))
			}, func(t *testing.T, c *http.Client, url string) {
				for path, cut := range map[string]bool{"/cut": true, "/whole": false} {
					resp := must(c.Get(url + path))
					n, err := io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode != 200 || n != part || (err != nil) != cut {
						t.Errorf("%s: %d, %d bytes, %v", path, resp.StatusCode, n, err)
					}
				}
			})
			if !slices.Contains(*ends, limit.Deadline) || len(*ends) != 2 {
				t.Errorf("%v", *ends)
			}
			if !strings.Contains(log.String(), "cut off by a deadline") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}
