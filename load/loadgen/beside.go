package loadgen

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
)

// dialer opens a connection, as net.Dialer's DialContext does.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// common is what targets beside each other have in common: their connections.
type common struct {
	transport *http.Transport
	again     http.RoundTripper // sends over transport
	http2     bool
	proxy     *url.URL // nil: none
	maxConns  int
	dialer    dialer
	traffic   traffic

	mu  sync.Mutex
	raw map[string]*connections // by address
}

func newCommon(cfg *HTTPConfig, proxy *url.URL) *common {
	s := &common{http2: cfg.HTTP2, proxy: proxy, maxConns: cfg.MaxConns, dialer: cfg.Dial, raw: map[string]*connections{}}
	if s.dialer == nil {
		s.dialer = new(net.Dialer).DialContext
	}
	s.transport = s.newTransport(cfg)
	s.again = &sendAgain{s.transport, cfg.HTTP2}
	return s
}

// to returns the connections of this package to an address.
func (s *common) to(address string) *connections {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw[address] == nil {
		s.raw[address] = newConnections(address, s.maxConns, s.dial, &s.traffic)
	}
	return s.raw[address]
}

// dial opens a connection, and notes how long that takes.
func (s *common) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.dialer(noteOf(ctx).dialing(ctx), network, address)
}

// dialCounted opens a connection for net/http.
func (s *common) dialCounted(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: c, traffic: &s.traffic}, nil
}

func (s *common) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cs := range s.raw {
		cs.closeIdle()
	}
	s.transport.CloseIdleConnections()
}
