package jetstream

import (
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy stands between a queue and its server. It can hold back the server's answers, and cut the
// connections.
type proxy struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	slow   time.Duration
	silent bool
	shut   bool   // no connection passes
	heard  []byte // requests of the clients while it is silent
	open   map[net.Conn]bool
}

func newProxy(t *testing.T, url string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &proxy{listener: l, server: strings.TrimPrefix(url, "nats://"), open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.server)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			if p.shut {
				p.mu.Unlock()
				client.Close()
				server.Close()
				continue
			}
			p.open[client], p.open[server] = true, true
			p.mu.Unlock()
			all.Go(func() { _, _ = io.Copy(server, io.TeeReader(client, p)); server.Close(); client.Close() })
			all.Go(func() { p.answer(client, server) })
		}
	})
	t.Cleanup(func() { l.Close(); p.cut(); all.Wait() })
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

// answer passes on the server's answers, each with the server's delay. Answers during silence are
// lost.
func (p *proxy) answer(client, server net.Conn) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1<<10)
	go func() {
		defer client.Close()
		for s := range pieces {
			<-time.NewTimer(time.Until(s.due)).C
			if _, err := client.Write(s.data); err != nil {
				server.Close()
			}
		}
	}()
	defer close(pieces)
	for buf := make([]byte, 32<<10); ; {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		slow, silent := p.slow, p.silent
		p.mu.Unlock()
		if !silent {
			pieces <- piece{append([]byte(nil), buf[:n]...), time.Now().Add(slow)}
		}
	}
}

func (p *proxy) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		p.heard = append(p.heard, b...)
	}
	return len(b), nil
}

// asked reports whether the clients have sent all these requests since the silence began.
func (p *proxy) asked(patterns ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range patterns {
		if !regexp.MustCompile(text).Match(p.heard) {
			return false
		}
	}
	return true
}

func (p *proxy) set(slow time.Duration, silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow, p.silent = slow, silent
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
		delete(p.open, c)
	}
}

// close cuts the connections, and lets no other through.
func (p *proxy) close() {
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.cut()
}
