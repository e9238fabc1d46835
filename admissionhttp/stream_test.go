package admissionhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// paused is a handler that runs before, waits, and runs after.
type paused struct {
	before func(http.ResponseWriter, *http.Request)
	at     chan limiter.Stats // stats of the limiter while the handler waits
	goOn   chan struct{}
	lim    *limiter.Limiter
}

func newPaused(lim *limiter.Limiter, before func(http.ResponseWriter, *http.Request)) *paused {
	return &paused{before, make(chan limiter.Stats, 1), make(chan struct{}), lim}
}

func (p *paused) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.before(w, r)
	p.at <- p.lim.Stats()
	<-p.goOn
}

func events(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, "data: 1\n\n")
	_ = http.NewResponseController(w).Flush()
	w.(http.Flusher).Flush()
}

func flushText(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "some")
	w.(http.Flusher).Flush()
}

func TestWhatIsAStreamHoldsNoSlot(t *testing.T) {
	byHeader := func(r *http.Request) bool { return r.Header.Get("X-Long") != "" }
	for name, c := range map[string]struct {
		method  string
		proto   int
		long    func(*http.Request) bool
		headers []string
		handler func(http.ResponseWriter, *http.Request)
		want    bool
	}{
		"events":                    {handler: events, want: true},
		"events, announced":         {handler: events, headers: []string{"Accept", "text/event-stream"}, want: true},
		"announced and not sent":    {handler: flushText, headers: []string{"Accept", "text/event-stream"}},
		"a forged upgrade":          {handler: flushText, headers: []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
		"an ordinary flush":         {handler: flushText},
		"ours, before it answers":   {handler: func(http.ResponseWriter, *http.Request) {}, headers: []string{"X-Long", "1"}, long: byHeader, want: true},
		"ours, from its first byte": {handler: flushText, headers: []string{"X-Long", "1"}, long: byHeader, want: true},
		"not ours":                  {handler: flushText, long: byHeader},
		"CONNECT":                   {method: http.MethodConnect, proto: 2, handler: flushText, want: true},
		"a forged CONNECT":          {method: http.MethodConnect, proto: 1, handler: flushText},
	} {
		t.Run(name, func(t *testing.T) {
			lim := one(t)
			p := newPaused(lim, c.handler)
			h := middleware(t, admissionhttp.Config{Limiter: lim, Long: c.long, FairShares: true})(p)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if c.method == "" {
					ask(h, t.Context(), c.headers...)
				} else {
					r := httptest.NewRequest(c.method, "example.org:443", nil)
					r.ProtoMajor = c.proto
					h.ServeHTTP(httptest.NewRecorder(), r)
				}
			}()
			s := <-p.at
			if long := s.LongInFlight == 1 && s.InFlight == 0; long != c.want || !long && s.InFlight != 1 {
				t.Errorf("%d in flight, %d long", s.InFlight, s.LongInFlight)
			}
			close(p.goOn)
			<-done
			atRest(t, lim, 1)
		})
	}
}

// An upgraded connection is a stream, whether the handler or a proxy hijacks it.
func TestAnUpgradedConnectionHoldsNoSlot(t *testing.T) {
	upgrade := func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			err = rw.Flush()
		}
		return conn, rw, err
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := upgrade(w)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, rw)
	})
	backend := serve(t, echo)
	target, _ := url.Parse(backend.URL)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = quiet
	for name, next := range map[string]http.Handler{"hijack": echo, "proxy": proxy} {
		t.Run(name, func(t *testing.T) {
			lim := one(t)
			ended := make(chan struct{})
			protected := middleware(t, admissionhttp.Config{Limiter: lim})(next)
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				protected.ServeHTTP(w, r)
			}))
			conn := must(net.Dial("tcp", s.Listener.Addr().String()))
			defer conn.Close()
			_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			if err != nil || resp.StatusCode != 101 {
				t.Fatalf("%v %v", resp, err)
			}
			_, _ = fmt.Fprintln(conn, "hello")
			if line, err := in.ReadString('\n'); line != "hello\n" {
				t.Fatalf("%q %v", line, err)
			}
			if st := lim.Stats(); st.InFlight != 0 || st.LongInFlight != 1 {
				t.Errorf("%d in flight, %d long", st.InFlight, st.LongInFlight)
			}
			conn.Close()
			<-ended
			atRest(t, lim, 1)
		})
	}
}

// The handler sees exactly the interfaces of the server's writer.
func TestTheWriterHasTheInterfacesOfTheOneBelow(t *testing.T) {
	type set struct{ flush, hijack, readFrom, push, notify bool }
	of := func(w http.ResponseWriter) (s set) {
		_, s.flush = w.(http.Flusher)
		_, s.hijack = w.(http.Hijacker)
		_, s.readFrom = w.(io.ReaderFrom)
		_, s.push = w.(http.Pusher)
		_, s.notify = w.(interface{ CloseNotify() <-chan bool })
		return s
	}
	protect := middleware(t, admissionhttp.Config{Limiter: one(t)})
	var without, with set
	var fault error
	look := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		without = of(w)
		protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			with = of(w)
			rc := http.NewResponseController(w)
			fault = rc.EnableFullDuplex()
			if r.ProtoMajor == 2 {
				fault = nil
			}
			if with.readFrom {
				_, _ = w.(io.ReaderFrom).ReadFrom(io.LimitReader(r.Body, 0))
			}
			_, _ = io.WriteString(w, "x")
			if err := rc.Flush(); err != nil {
				fault = err
			}
			if with.notify {
				_ = w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
			}
			if with.push && w.(http.Pusher).Push("/", nil) == nil {
				t.Error("pushed to a client that takes none")
			}
		})).ServeHTTP(w, r)
	})
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		s := serve(t, look, func(s *httptest.Server) { s.EnableHTTP2 = h2 })
		if status := fetch(t, s.Client(), s.URL); status != 200 || with != without || fault != nil || !with.flush || with.push != h2 {
			t.Errorf("%s: %d, without %+v, with %+v, %v", name, status, without, with, fault)
		}
	}
	// Writers of other middleware that implement some of these interfaces.
	type (
		f = http.Flusher
		h = http.Hijacker
		n = interface{ CloseNotify() <-chan bool }
	)
	var below struct { // no method is called
		http.ResponseWriter
		f
		h
		n
	}
	below.ResponseWriter = httptest.NewRecorder()
	plain := struct{ http.ResponseWriter }{below.ResponseWriter}
	for _, outer := range []http.ResponseWriter{
		plain,
		struct {
			http.ResponseWriter
			f
		}{plain, below.f},
		struct {
			http.ResponseWriter
			h
		}{plain, below.h},
		struct {
			http.ResponseWriter
			n
		}{plain, below.n},
		struct {
			http.ResponseWriter
			f
			h
		}{plain, below.f, below.h},
		struct {
			http.ResponseWriter
			f
			n
		}{plain, below.f, below.n},
		struct {
			http.ResponseWriter
			h
			n
		}{plain, below.h, below.n},
		below,
	} {
		protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if got, want := of(w), of(outer); got != want {
				t.Errorf("the writer has %+v, the one outside %+v", got, want)
			}
		})).ServeHTTP(outer, httptest.NewRequest(http.MethodGet, "/", nil))
	}
	// A writer that hides all interfaces, and a writer that only unwraps.
	hides := struct{ http.ResponseWriter }{httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { with = of(w) })).ServeHTTP(hides, r)
	if with != (set{}) {
		t.Errorf("%+v", with)
	}
	protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { with = of(w) })).ServeHTTP(&unwraps{httptest.NewRecorder()}, r)
	if with != (set{flush: true}) {
		t.Errorf("%+v", with)
	}
}

type unwraps struct{ below http.ResponseWriter }

func (u *unwraps) Header() http.Header         { return u.below.Header() }
func (u *unwraps) Write(p []byte) (int, error) { return u.below.Write(p) }
func (u *unwraps) WriteHeader(status int)      { u.below.WriteHeader(status) }
func (u *unwraps) Unwrap() http.ResponseWriter { return u.below }
