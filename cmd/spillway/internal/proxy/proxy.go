// Package proxy puts a limiter in front of a service that is reached over HTTP, whatever the service is
// written in.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/admissionhttp/client"
	"github.com/spillway-go/spillway/limiter"
)

// idle is how long a connection to the service is kept for the next request: less than the two to five
// seconds after which common servers close one, for a request that crosses such a close fails.
const idle = time.Second

// handler admits requests and passes them on to the service. Requests that never end by themselves end with
// streams.
func handler(cfg Config, lim *limiter.Limiter, logger *slog.Logger, streams context.Context) (http.Handler, error) {
	admission := admissionhttp.Config{Limiter: lim, Kind: kind, Probes: cfg.Probes, Logger: logger, Trusted: trusted(cfg.Trust)}
	if cfg.Deadline > 0 {
		admission.Deadlines = map[spillway.Priority]time.Duration{spillway.Normal: cfg.Deadline}
	}
	admit, err := admissionhttp.New(admission)
	if err != nil {
		return nil, err
	}
	admission.Long, admission.Logger = func(*http.Request) bool { return true }, nil // one log is enough for a limiter
	admitLong, err := admissionhttp.New(admission)
	if err != nil {
		return nil, err
	}
	pass, err := passOn(cfg.To, logger)
	if err != nil {
		return nil, err
	}
	usual, long := admit(pass), admitLong(pass)
	routes, err := lookUp(cfg.Routes)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, ctx := routes(r), r.Context()
		if to == nil {
			to = &Route{}
		}
		if p := to.Priority.value; p != nil {
			ctx = spillway.WithPriority(ctx, *p)
		}
		next := usual
		switch {
		case to.Long:
			next = long
		case to.Deadline.value != nil:
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *to.Deadline.value)
			defer cancel()
		}
		if to.Long || endless(r) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(streams, cancel)()
		}
		r = r.WithContext(ctx)
		r.Pattern = to.Match
		next.ServeHTTP(w, r)
	}), nil
}

// endless reports whether a request asks for an answer that may never end.
func endless(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// lookUp returns the route of a request; nil: no route matches.
func lookUp(routes []Route) (func(*http.Request) *Route, error) {
	mux, known := http.NewServeMux(), map[string]*Route{}
	var wrong []error
	for i := range routes {
		r := &routes[i]
		if r.Match == "" {
			continue
		}
		if err := add(mux, r.Match); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", r.at, err))
		}
		known[r.Match] = r
	}
	if len(known) == 0 {
		return func(*http.Request) *Route { return nil }, nil
	}
	return func(r *http.Request) *Route {
		_, pattern := mux.Handler(r) // which may be that of a redirection: the service decides on those
		return known[pattern]
	}, errors.Join(wrong...)
}

// registered is where in this program a ServeMux got a pattern.
var registered = regexp.MustCompile(` \(registered at [^)]*\)`)

// add adds a pattern. A ServeMux panics for one that is wrong or contradicts another one.
func add(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			first, _, _ := strings.Cut(fmt.Sprint(v), "\n")
			err = errors.New(strings.TrimSuffix(registered.ReplaceAllString(first, ""), ":"))
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// kind names what a request does that no route matches: by its method and the first part of its path.
func kind(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return r.Method + " /" + first
}

// trusted believes the priority of callers from these networks; nil: of nobody.
func trusted(networks []netip.Prefix) func(*http.Request) bool {
	if len(networks) == 0 {
		return nil
	}
	return func(r *http.Request) bool {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return false
		}
		for _, n := range networks {
			if n.Contains(from.Addr().Unmap()) {
				return true
			}
		}
		return false
	}
}

// passOn sends requests to the service. What a client sent goes on as it was: the host, the query and what
// proxies in front have added. Priorities and deadlines are those that admission found. Nothing is sent twice.
func passOn(to *url.URL, logger *slog.Logger) (http.Handler, error) {
	base := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, ExpectContinueTimeout: time.Second,
		IdleConnTimeout: idle, MaxIdleConnsPerHost: 4096,
		DisableCompression: true, Protocols: &http.Protocols{},
	}
	target := *to
	switch to.Scheme {
	case "h2c":
		target.Scheme = "http"
		base.Protocols.SetUnencryptedHTTP2(true)
	case "https":
		base.Protocols.SetHTTP2(true)
		fallthrough
	default:
		base.Protocols.SetHTTP1(true)
	}
	// A service answers 429 to one caller: that refuses nobody else here.
	transport, err := client.New(client.Config{Base: base, Attempts: 1, Tolerance: math.Inf(1)})
	if err != nil {
		return nil, err
	}
	failed := &failures{logger: logger}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&target)
			r.Out.Host = r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				r.Out.Header[name] = r.In.Header[name]
			}
			host, proto := r.In.Header["X-Forwarded-Host"], r.In.Header["X-Forwarded-Proto"]
			r.SetXForwarded()
			if host != nil {
				r.Out.Header["X-Forwarded-Host"] = host
			}
			if proto != nil {
				r.Out.Header["X-Forwarded-Proto"] = proto
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			status := http.StatusBadGateway
			if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() { // as context.DeadlineExceeded is
				status = http.StatusGatewayTimeout
			}
			if r.Context().Err() == nil || status == http.StatusGatewayTimeout { // otherwise the client has left
				failed.say(status, err)
			}
			http.Error(w, http.StatusText(status)+": the service behind this proxy did not answer", status)
		},
		ErrorLog:   slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		BufferPool: &buffers{sync.Pool{New: func() any { return new([32 << 10]byte) }}},
	}, nil
}

// failures logs the first failure, and then one in ten seconds.
type failures struct {
	logger *slog.Logger
	mu     sync.Mutex
	next   time.Time
	missed int
}

func (n *failures) say(status int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := time.Now(); t.Before(n.next) {
		n.missed++
		return
	}
	n.logger.Warn("the service did not answer", "status", status, "error", err, "more_since_last", n.missed)
	n.next, n.missed = time.Now().Add(10*time.Second), 0
}

// buffers are what answers are copied through.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte  { return b.pool.Get().(*[32 << 10]byte)[:] }
func (b *buffers) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }
