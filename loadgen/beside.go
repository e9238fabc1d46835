package loadgen

import (
	"net/http"
	"sync"
)

// common is what targets beside each other have in common: their connections.
type common struct {
	transport *http.Transport
	again     http.RoundTripper // sends over transport
	http2     bool
	maxConns  int
	traffic   traffic

	mu  sync.Mutex
	raw map[string]*connections // by address
}

func newCommon(cfg *HTTPConfig) *common {
	s := &common{http2: cfg.HTTP2, maxConns: cfg.MaxConns, raw: map[string]*connections{}}
	s.transport = newTransport(cfg, &s.traffic)
	s.again = &sendAgain{s.transport, cfg.HTTP2}
	return s
}

// to returns the connections of this package to an address.
func (s *common) to(address string) *connections {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw[address] == nil {
		s.raw[address] = newConnections(address, s.maxConns, &s.traffic)
	}
	return s.raw[address]
}

func (s *common) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cs := range s.raw {
		cs.closeIdle()
	}
	s.transport.CloseIdleConnections()
}
