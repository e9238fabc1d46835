package budget

import (
	"io"
	"net"
	"sync"
)

// proxy passes connections on to an address. Cut, it passes nothing and closes nothing, as
// a network that is partitioned.
type proxy struct {
	net.Listener
	to string

	mu     sync.Mutex
	passes *sync.Cond
	cut    bool
	closed bool
	conns  []net.Conn
}

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{Listener: l, to: to}
	p.passes = sync.NewCond(&p.mu)
	go p.serve()
	return p, nil
}

func (p *proxy) serve() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		go p.copy(out, in)
		go p.copy(in, out)
	}
}

// copy passes on what comes, later if the network is cut meanwhile.
func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	_, _ = io.Copy(writer{p, to}, from)
}

type writer struct {
	p  *proxy
	to net.Conn
}

func (w writer) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	for w.p.cut && !w.p.closed {
		w.p.passes.Wait()
	}
	w.p.mu.Unlock()
	return w.to.Write(b)
}

// set cuts the network, or lets it pass again.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.passes.Broadcast()
}

func (p *proxy) close() {
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.passes.Broadcast()
	for _, c := range p.conns {
		c.Close()
	}
}
