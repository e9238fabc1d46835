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
	"slices"
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

// door is what all requests go through.
type door struct {
	admission admissionhttp.Config
	pass      http.Handler    // to the service
	streams   context.Context // with which requests end that never end by themselves
	usual     http.Handler
	admitted  map[way]http.Handler // by how routes are admitted
}

// way is how the requests of a route are admitted.
type way struct {
	deadline time.Duration
	long     bool
}

// rules are what may change while a proxy serves.
type rules struct {
	route  func(*http.Request) *Route // nil: no route matches
	admits map[*Route]http.Handler
	trust  []netip.Prefix
}

func newDoor(cfg Config, now func() *rules, lim *limiter.Limiter, logger *slog.Logger, streams context.Context) (*door, error) {
	d := &door{streams: streams, admitted: map[way]http.Handler{}}
	var err error
	if d.pass, err = passOn(cfg.To, logger, streams); err != nil {
		return nil, err
	}
	d.admission = admissionhttp.Config{Limiter: lim, Kind: kind, Probes: cfg.Probes, Logger: logger,
		Trusted: func(r *http.Request) bool { return now().trusts(r) }}
	if d.usual, err = d.by(way{deadline: cfg.Deadline}); err != nil {
		return nil, err
	}
	d.admission.Logger = slog.New(otherWays{logger.Handler()})
	return d, nil
}

// otherWays logs what one way of admission does, and leaves what is said of the whole limiter to the first way.
type otherWays struct{ slog.Handler }

// Handle drops troubles, which are the limiter's.
func (h otherWays) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "trouble") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// by is the handler of requests that are admitted in that way.
func (d *door) by(w way) (http.Handler, error) {
	if h := d.admitted[w]; h != nil {
		return h, nil
	}
	cfg := d.admission
	if w.deadline > 0 {
		cfg.Deadlines = map[spillway.Priority]time.Duration{spillway.Normal: w.deadline}
	}
	pass := d.pass
	if w.long {
		cfg.Long = func(*http.Request) bool { return true }
		pass = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(d.streams, cancel)()
			d.pass.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	admit, err := admissionhttp.New(cfg)
	if err == nil {
		d.admitted[w] = admit(pass)
	}
	return d.admitted[w], err
}

// rules are those of a file. The calls must not coincide.
func (d *door) rules(cfg Config) (*rules, error) {
	route, err := lookUp(cfg.Routes)
	if err != nil {
		return nil, err
	}
	now := &rules{route, map[*Route]http.Handler{}, cfg.Trust}
	for _, r := range cfg.Routes {
		if now.admits[r], err = d.by(way{r.Deadline.or(cfg.Deadline), r.Long}); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// handler admits requests and passes them on to the service.
func (d *door) handler(now func() *rules) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := now()
		to := now.route(r)
		if to == nil {
			d.usual.ServeHTTP(w, r)
			return
		}
		if p := to.Priority.value; p != nil {
			r = r.WithContext(spillway.WithPriority(r.Context(), *p))
		}
		r.Pattern = to.Match
		now.admits[to].ServeHTTP(w, r)
	})
}

// lookUp returns the route of a request; nil: no route matches.
func lookUp(routes []*Route) (func(*http.Request) *Route, error) {
	mux, known := http.NewServeMux(), map[string]*Route{}
	var wrong []error
	for _, r := range routes {
		if r == nil || r.Match == "" {
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

// trusts reports whether the priority of the caller is believed.
func (now *rules) trusts(r *http.Request) bool {
	if len(now.trust) == 0 {
		return false
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(now.trust, func(n netip.Prefix) bool { return n.Contains(from.Addr().Unmap()) })
}

// passOn sends requests to the service. What a client sent goes on as it was: the host, the query and what
// proxies in front have added. Priorities and deadlines are those that admission found. There is no second
// attempt, but for those that net/http makes of idempotent requests on connections that the service has closed.
// Answers that are streams are cut when streams ends.
func passOn(to *url.URL, logger *slog.Logger, streams context.Context) (http.Handler, error) {
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
			if strings.EqualFold(r.In.Header.Get("Upgrade"), "h2c") { // what comes behind it would pass unlimited
				for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
					r.Out.Header.Del(name)
				}
			}
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
			late, ok := errors.AsType[net.Error](err)
			if dial, dials := errors.AsType[*net.OpError](err); ok && late.Timeout() && !(dials && dial.Op == "dial" && r.Context().Err() == nil) {
				status = http.StatusGatewayTimeout // as for context.DeadlineExceeded
			}
			if r.Context().Err() == nil || status == http.StatusGatewayTimeout { // otherwise the client has left
				failed.say(status, err)
			}
			http.Error(w, http.StatusText(status)+": the service behind this proxy did not answer", status)
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusSwitchingProtocols || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
				body := resp.Body
				stop := context.AfterFunc(streams, func() { _ = body.Close() })
				context.AfterFunc(resp.Request.Context(), func() { stop() })
			}
			return nil
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
