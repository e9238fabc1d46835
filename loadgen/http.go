package loadgen

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// HTTPConfig describes the requests of an HTTP target.
type HTTPConfig struct {
	URL    string // http or https
	Method string // empty: GET, or POST when there is a Body
	Header http.Header
	Body   []byte // sent with every request

	// URLFor returns the URL of request n, in place of URL. Many goroutines
	// call it at once, NewHTTP once with 0.
	URLFor func(n uint64) string

	// Check judges the complete body of a 2xx answer; an error makes the
	// outcome an Error. Many goroutines call it at once. The body is reused as
	// soon as it returns.
	Check func(n uint64, status int, body []byte) error

	TLS      *tls.Config   // for https; nil: the system's roots
	MaxConns int           // most connections to a host, a request waits for one; 0: as many as requests in flight
	Timeout  time.Duration // of one request, besides the context's; 0: the context's only
}

// HTTP is a Target that sends HTTP/1.1 requests over kept-alive connections. It
// follows no redirects, asks for no compression and uses no proxy. Every body
// is read to its end, so that connections are reused and latency means the
// complete answer.
//
// A 2xx answer is OK, 429 and 503 are Rejected, a passed deadline is a Timeout,
// everything else is an Error.
type HTTP struct {
	cfg        HTTPConfig
	request    *http.Request // the template: each request is a shallow copy
	transport  *http.Transport
	bodies     sync.Pool // of *bytes.Buffer, for Check
	firstError atomic.Pointer[error]
}

// NewHTTP checks cfg and returns its target. Nothing is sent.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	if cfg.URLFor != nil {
		cfg.URL = cfg.URLFor(0)
	}
	u, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.MaxConns < 0 || cfg.Timeout < 0 {
		return nil, fmt.Errorf("loadgen: MaxConns %d and Timeout %v must not be negative", cfg.MaxConns, cfg.Timeout)
	}
	if cfg.Method == "" {
		cfg.Method = http.MethodGet
		if cfg.Body != nil {
			cfg.Method = http.MethodPost
		}
	}
	if !isToken(cfg.Method) {
		return nil, fmt.Errorf("loadgen: method %q is none: want GET, POST or the like", cfg.Method)
	}
	header, err := cloneHeader(cfg.Header)
	if err != nil {
		return nil, err
	}
	request := &http.Request{
		Method: cfg.Method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if host := header.Get("Host"); host != "" { // net/http expects it here
		request.Host = host
		header.Del("Host")
	}
	if password, ok := u.User.Password(); ok && header.Get("Authorization") == "" {
		request.SetBasicAuth(u.User.Username(), password)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	idle := cfg.MaxConns
	if idle == 0 {
		idle = 1 << 20 // keep them all
	}
	return &HTTP{cfg: cfg, request: request, transport: &http.Transport{
		Protocols:           &protocols,
		TLSClientConfig:     cfg.TLS.Clone(), // Clone of nil is nil
		MaxConnsPerHost:     cfg.MaxConns,
		MaxIdleConnsPerHost: idle,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}}, nil
}

// Do sends request n and reads its answer.
func (h *HTTP) Do(ctx context.Context, n uint64) Outcome {
	if h.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.cfg.Timeout)
		defer cancel()
	}
	outcome, err := h.do(ctx, n)
	if err != nil {
		if outcome = FromError(err); outcome == Error && ctx.Err() == nil {
			h.remember(err)
		}
	}
	return outcome
}

func (h *HTTP) do(ctx context.Context, n uint64) (Outcome, error) {
	request := h.request.WithContext(ctx)
	if h.cfg.URLFor != nil {
		u, err := parseURL(h.cfg.URLFor(n))
		if err != nil {
			return Error, err
		}
		if request.Host == h.request.URL.Host { // not set by a header
			request.Host = u.Host
		}
		request.URL = u
	}
	if len(h.cfg.Body) > 0 {
		// A new reader each time: a connection may still be reading the old one
		// when an early answer is complete.
		request.Body = io.NopCloser(bytes.NewReader(h.cfg.Body))
		request.ContentLength = int64(len(h.cfg.Body))
	}
	answer, err := h.transport.RoundTrip(request)
	if err != nil {
		return Error, err
	}
	defer answer.Body.Close()
	status := answer.StatusCode
	good := status >= 200 && status <= 299
	if good && h.cfg.Check != nil {
		return OK, h.check(n, status, answer.Body)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return Error, fmt.Errorf("reading the body: %w", err)
	}
	switch {
	case good:
		return OK, nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return Rejected, nil
	}
	return Error, fmt.Errorf("status %s", answer.Status)
}

// check reads the body into a reused buffer and calls Check.
func (h *HTTP) check(n uint64, status int, r io.Reader) error {
	body, _ := h.bodies.Get().(*bytes.Buffer)
	if body == nil {
		body = new(bytes.Buffer)
	}
	defer h.bodies.Put(body)
	body.Reset()
	if _, err := body.ReadFrom(r); err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	if err := h.cfg.Check(n, status, body.Bytes()); err != nil {
		return checkError{err}
	}
	return nil
}

// checkError hides what Check returned from errors.Is: it is an Error whatever
// it wraps.
type checkError struct{ err error }

func (e checkError) Error() string { return "check: " + e.err.Error() }

// remember keeps the first error. It is not in Do, so that only errors pay for it.
func (h *HTTP) remember(err error) { h.firstError.CompareAndSwap(nil, &err) }

// FirstError returns the first error behind an Error outcome, or nil: the outcome
// says that something is wrong, the error says what.
func (h *HTTP) FirstError() error {
	if err := h.firstError.Load(); err != nil {
		return *err
	}
	return nil
}

// Reach opens a connection to the target's host and closes it again. It sends
// no request. Use it before a run to tell a wrong address from a slow server.
func (h *HTTP) Reach(ctx context.Context) error {
	u := h.request.URL
	port := u.Port()
	if port == "" {
		port = u.Scheme // net resolves it as a service name
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("loadgen: no server answers at %s (%w): is the server running?", u.Host, err)
	}
	return conn.Close()
}

// Close closes the idle connections. The target remains usable.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the verb and a second copy of the URL
		}
		return nil, fmt.Errorf("loadgen: URL %q: %w", s, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("loadgen: URL %q: want http://host:port/path or https://host:port/path", s)
	}
	return u, nil
}

// cloneHeader copies h in canonical form, or says which line net/http would
// refuse to send.
func cloneHeader(h http.Header) (http.Header, error) {
	c := make(http.Header, len(h))
	for name, values := range h {
		if !isToken(name) {
			return nil, fmt.Errorf("loadgen: header name %q: want letters, digits and -", name)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, fmt.Errorf("loadgen: header %s: its value %q holds a control character", name, v)
			}
			c.Add(name, v)
		}
	}
	return c, nil
}

// isToken reports whether s is a token of RFC 9110, as methods and header names are.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
