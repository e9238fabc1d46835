package app

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Without a timeout of requests there was none of writing, and none of the header.
func TestEveryBoundOfTheServerIsSet(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Second, time.Hour} {
		srv := server(http.NotFoundHandler(), timeout, slog.New(slog.DiscardHandler))
		if srv.WriteTimeout <= timeout || srv.ReadTimeout <= 0 || srv.ReadHeaderTimeout <= 0 || srv.IdleTimeout <= 0 || srv.MaxHeaderBytes <= 0 || srv.MaxHeaderBytes > 64<<10 || srv.HTTP2.WriteByteTimeout <= 0 {
			t.Errorf("timeout %v: %+v", timeout, srv)
		}
	}
}

func TestAHeaderIsBounded(t *testing.T) {
	r := start(t, quick())
	req, err := http.NewRequest("GET", "http://"+r.addr+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: %d", resp.StatusCode)
	}
}

// endless is a listener with always one connection more.
type endless struct{ net.Listener }

func (endless) Accept() (net.Conn, error) { c, _ := net.Pipe(); return c, nil }
func (endless) Close() error              { return nil }

func TestNoConnectionIsAcceptedBeyondTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var srv http.Server
		l := bounded(&srv, endless{}, 2)
		accepted := make(chan error, 9)
		go func() {
			for {
				_, err := l.Accept()
				if accepted <- err; err != nil {
					return
				}
			}
		}()
		for _, state := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateClosed, http.StateHijacked} {
			srv.ConnState(nil, state)
		}
		synctest.Wait()
		if n := len(accepted); n != 4 {
			t.Errorf("%d were accepted, of which 2 ended; want 4", n)
		}
		for range 2 { // closing twice is fine
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		for range 4 {
			<-accepted
		}
		if err := <-accepted; err != net.ErrClosed {
			t.Error(err)
		}
	})
}

// A client with many connections, which it need not even use, took one goroutine
// and one file of the service for each.
func TestConnectionsAreBounded(t *testing.T) {
	c := quick()
	c.Listen.MaxConnections = 2
	r := start(t, c)
	ask := func(conn net.Conn) string {
		fmt.Fprintf(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err.Error()
		}
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	first, second, third := dial(), dial(), dial()
	if got := ask(first) + ask(second); got != "alive\nalive\n" {
		t.Fatal(got)
	}
	answered := make(chan string)
	go func() { answered <- ask(third) }()
	first.Close() // makes room
	if got := <-answered; got != "alive\n" {
		t.Error(got)
	}
	if _, err := r.report(t); err != nil { // stops, though it may be waiting for room
		t.Error(err)
	}
}
