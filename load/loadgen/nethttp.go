package loadgen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// newTransport returns a net/http transport for requests that the connections of this package
// cannot send.
func (s *common) newTransport(cfg *HTTPConfig) *http.Transport {
	var protocols http.Protocols
	if cfg.HTTP2 {
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
	} else {
		protocols.SetHTTP1(true)
	}
	idle := cfg.MaxConns
	if idle == 0 {
		idle = 1 << 20 // keep them all
	}
	t := &http.Transport{
		Protocols:           &protocols,
		DialContext:         s.dialCounted,
		TLSClientConfig:     cfg.TLS.Clone(), // Clone of nil is nil
		MaxConnsPerHost:     cfg.MaxConns,
		MaxIdleConnsPerHost: idle,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}
	if s.proxy != nil {
		t.Proxy = http.ProxyURL(s.proxy)
	}
	return t
}

// newClient returns a client that follows at most that number of redirects.
func newClient(transport http.RoundTripper, most int) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > most {
			return fmt.Errorf("more than %d redirects", most)
		}
		return nil
	}}
}

// viaNetHTTP sends request n with net/http, to address unless it is empty.
func (h *HTTP) viaNetHTTP(ctx context.Context, n uint64, address string, got *answer) (Outcome, error) {
	if h.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.cfg.Timeout)
		defer cancel()
	}
	request, err := h.request(ctx, n, address)
	if err != nil {
		return Error, err
	}
	send := h.common.again.RoundTrip
	if h.client != nil {
		send = h.client.Do
	}
	answer, err := send(request)
	if err != nil {
		return Error, err
	}
	defer answer.Body.Close()
	got.status, got.after = answer.StatusCode, parseAfter([]byte(answer.Header.Get("Retry-After")))
	if isRefusal(answer.StatusCode) {
		got.reason = parseReason([]byte(answer.Header.Get(headerReason)), "")
	}
	if !h.looksAt(answer.StatusCode) {
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return Error, bodyError(err)
		}
		return h.outcome(n, answer.StatusCode, nil)
	}
	body, _ := h.bodies.Get().(*bytes.Buffer)
	if body == nil {
		body = new(bytes.Buffer)
	}
	defer h.bodies.Put(body)
	body.Reset()
	if _, err := body.ReadFrom(answer.Body); err != nil {
		return Error, bodyError(err)
	}
	return h.outcome(n, answer.StatusCode, body.Bytes())
}

// request makes request n for net/http.
func (h *HTTP) request(ctx context.Context, n uint64, address string) (*http.Request, error) {
	request := h.sample.WithContext(ctx) // a shallow copy
	row := h.cfg.Data.row(n)
	if address == "" && !h.target.fixed() {
		address = h.origin + string(h.target.append(nil, n, row))
	}
	if address != "" {
		u, err := parseURL(address)
		if err != nil {
			return nil, err
		}
		if request.Host == h.sample.URL.Host { // not set by a header
			request.Host = u.Host
		}
		request.URL = u
	}
	if h.headerVaries {
		request.Header = make(http.Header, len(h.lines))
		for _, line := range h.lines {
			request.Header.Add(line.name, string(line.value.append(nil, n, row)))
		}
	}
	if len(h.body) > 0 {
		body := h.cfg.Body
		if !h.body.fixed() {
			body = h.body.append(nil, n, row)
		}
		// A new reader each time: a connection may still be reading the old one
		// when an early answer is complete.
		request.Body = io.NopCloser(bytes.NewReader(body))
		// A redirect asks for the body again, and so does a request of which nothing was processed.
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		request.ContentLength = int64(len(body))
	}
	return request, nil
}
