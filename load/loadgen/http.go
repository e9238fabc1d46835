package loadgen

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
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

	// Data fills placeholders in the URL behind the host, in values of Header and in Body: {{.id}}
	// is the column id of the request's row, {{n}} the request's number. Values in the URL are
	// escaped. With nil, braces have no special meaning.
	Data *Data

	// URLFor returns the URL of request n, in place of URL. Many goroutines call URLFor at once,
	// and NewHTTP calls it once with 0.
	URLFor func(n uint64) string

	// Check judges the complete body of a 2xx answer; an error makes the outcome an Error. Many
	// goroutines call Check at once. The body is reused as soon as Check returns.
	Check func(n uint64, status int, body []byte) error

	// Redirects is the most redirects that one request follows, as net/http's client does: over
	// other hosts, too, and without Authorization there. The outcome is that of the last answer.
	// Requests then go through net/http, and cost what net/http costs. 0: no redirect is followed,
	// and the outcome of a redirect is an Error.
	Redirects int

	// Beside is a target whose connections this target uses, too, whatever else differs between
	// them. HTTP2, TLS, Dial, Proxy and MaxConns are then those of Beside, and Beside counts the
	// bytes. nil: connections of its own.
	Beside *HTTP

	// Dial opens the connections, such as those to a Unix socket, whatever the host of the URL is.
	// nil: net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Proxy is the URL of a proxy that all requests go through: http, https or socks5, with a user
	// and a password if the proxy asks for them. Requests then go through net/http. Empty: no proxy;
	// the environment is not read.
	Proxy string

	HTTP2    bool          // HTTP/2, over plain http without an upgrade; otherwise HTTP/1.1
	TLS      *tls.Config   // for https; nil: the system's roots
	MaxConns int           // most connections to a host; requests wait for one. 0: as many as requests in flight
	Timeout  time.Duration // bound on one request, in addition to the context's deadline; 0: no other bound
}

// HTTP is a Target that sends HTTP requests over kept-alive connections. It follows redirects
// only if HTTPConfig.Redirects allows it, and asks for no compression. Every body is
// read to its end, so connections are reused, and latency includes the complete answer.
//
// A 2xx answer is OK, 429 and 503 are Rejected, a passed deadline is a Timeout,
// everything else is an Error.
//
// Requests over plain HTTP/1.1 to the host of the URL take a short path: the bytes of a request are
// prepared once, the answer is read in place, and HTTPConfig.Timeout is the connection's deadline.
// The short path allocates nothing, and leaves more of the processors to a target on the same
// machine ("spillway lab load" has both paths). TLS, HTTP/2, a proxy, other hosts, bodies of more than 64 KiB
// and requests that may follow redirects go through net/http.
//
// Both paths send a request again only if that is safe: nothing of the request was written, the
// method is idempotent and the server had closed the idle connection, or the server of HTTP/2 says
// that the request was not processed. Both look at an idle connection before a POST or a PATCH, so
// that such a request is not written to a connection which the server has closed.
type HTTP struct {
	cfg    HTTPConfig
	sample *http.Request // copied (shallow) for each request of net/http

	origin       string // scheme and host, the beginning of URLs
	start        string // the method and a space
	middle       string // the part after the request target: version and host
	target       template
	lines        []headerLine // without the host and headers that follow from the body
	headerVaries bool
	body         template
	message      []byte // a whole request, if all requests are alike
	repeats      bool   // the method is idempotent
	closes       bool   // a header asks to close the connection

	raw        *connections // nil: net/http only
	client     *http.Client // nil: no redirect is followed
	common     *common
	bodies     sync.Pool // *bytes.Buffer, for Check with net/http
	firstError atomic.Pointer[error]
}

// maxRawBody is the largest body that is written before the answer is read. A larger body might not
// fit in the sockets' buffers when a server answers without reading the body.
const maxRawBody = 64 << 10

// NewHTTP checks cfg and returns a target for it. NewHTTP sends nothing.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	address, err := plainURL(cfg.URL, cfg.Data)
	if err != nil {
		return nil, err
	}
	if cfg.URLFor != nil {
		address = cfg.URLFor(0)
	}
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	if cfg.MaxConns < 0 || cfg.Timeout < 0 {
		return nil, fmt.Errorf("loadgen: MaxConns %d and Timeout %v must not be negative", cfg.MaxConns, cfg.Timeout)
	}
	if cfg.Redirects < 0 {
		return nil, fmt.Errorf("loadgen: Redirects is %d: want 0 for none, or how many a request follows", cfg.Redirects)
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
	sample := &http.Request{
		Method: cfg.Method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if host := header.Get("Host"); host != "" { // net/http expects the host here
		sample.Host = host
	}
	for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding", "Trailer"} {
		header.Del(name) // Host is handled above, the others follow from the body
	}
	if password, ok := u.User.Password(); ok && header.Get("Authorization") == "" {
		sample.SetBasicAuth(u.User.Username(), password)
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "spillway-loadgen")
	}
	h := &HTTP{cfg: cfg, sample: sample, origin: u.Scheme + "://" + u.Host}
	if cfg.Beside == nil {
		proxy, err := parseProxy(&cfg)
		if err != nil {
			return nil, err
		}
		h.common = newCommon(&cfg, proxy)
	} else {
		h.common = cfg.Beside.common
	}
	if cfg.Redirects > 0 {
		h.client = newClient(h.common.again, cfg.Redirects)
	}
	if err := h.compile(); err != nil {
		return nil, err
	}
	if u.Scheme == "http" && !h.common.http2 && h.common.proxy == nil && cfg.Redirects == 0 && isPlainHost(u.Host) && isPlainHost(sample.Host) && h.body.longest(cfg.Data) <= maxRawBody {
		port := u.Port()
		if port == "" {
			port = "80"
		}
		h.raw = h.common.to(net.JoinHostPort(u.Hostname(), port))
	}
	return h, nil
}

// compile prepares the parts of the requests.
func (h *HTTP) compile() (err error) {
	if h.target, err = compileTarget(h.sample.URL, h.cfg.Data); err != nil {
		return err
	}
	if h.body, err = compile(string(h.cfg.Body), h.cfg.Data, nil); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(h.sample.Header)) {
		for _, text := range h.sample.Header[name] {
			value, err := compile(text, h.cfg.Data, nil)
			if err != nil {
				return err
			}
			h.lines = append(h.lines, headerLine{name, value})
			h.headerVaries = h.headerVaries || !value.fixed()
			h.closes = h.closes || name == "Connection" && hasToken([]byte(text), "close")
		}
	}
	h.start, h.middle = h.cfg.Method+" ", " HTTP/1.1\r\nHost: "+h.sample.Host+"\r\n"
	switch h.cfg.Method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		h.repeats = true
	}
	if h.cfg.URLFor == nil && h.target.fixed() && !h.headerVaries && h.body.fixed() {
		h.message = h.write(new(conn), 0, "")
	}
	return checkLines(h.lines, h.cfg.Data)
}

// Do sends request n and reads its answer.
func (h *HTTP) Do(ctx context.Context, n uint64) Outcome {
	outcome, _ := h.Ask(ctx, n)
	return outcome
}

// Ask is Do, and also returns how long Retry-After tells a refused client to wait before its next
// request; 0 without Retry-After.
func (h *HTTP) Ask(ctx context.Context, n uint64) (outcome Outcome, after time.Duration) {
	var got answer
	outcome, err := h.do(ctx, n, &got)
	noteOf(ctx).answered(&got, err)
	if err != nil {
		if outcome = FromError(err); outcome == Error && ctx.Err() == nil {
			h.remember(err)
		}
	}
	if outcome == Rejected {
		after = got.after
	}
	return outcome, after
}

// answer is what is known of an answer beside its outcome.
type answer struct {
	status    int           // 0: no head of an answer came
	reason    string        // Spillway-Reason of a refusal
	after     time.Duration // Retry-After
	firstByte time.Duration // the phase of that name
}

func (h *HTTP) do(ctx context.Context, n uint64, got *answer) (Outcome, error) {
	address := ""
	if h.cfg.URLFor != nil {
		address = h.cfg.URLFor(n)
	}
	if h.raw != nil {
		target, local, err := h.targetOf(address)
		if err != nil {
			return Error, err
		}
		if local {
			return h.viaConnections(ctx, n, target, got)
		}
	}
	return h.viaNetHTTP(ctx, n, address, got)
}

// viaConnections sends request n over the connections of this package. target is the request
// target, or empty for the configured one.
func (h *HTTP) viaConnections(ctx context.Context, n uint64, target string, got *answer) (Outcome, error) {
	x := call{ctx: ctx, began: time.Now(), toHEAD: h.cfg.Method == http.MethodHead, repeats: h.repeats, closes: h.closes}
	x.deadline, _ = ctx.Deadline()
	if h.cfg.Timeout > 0 {
		if own := x.began.Add(h.cfg.Timeout); x.deadline.IsZero() || own.Before(x.deadline) {
			x.deadline = own
		}
	}
	status, c, err := h.raw.send(x, func(c *conn) []byte {
		if h.message != nil {
			return h.message
		}
		return h.write(c, n, target)
	}, h.looksAt)
	if err != nil {
		return Error, err
	}
	defer h.raw.done(c, x.began)
	*got = answer{status, c.answers.reason, c.after, c.answers.first.Sub(c.sent)}
	return h.outcome(n, status, c.body)
}

// write writes request n into the buffer of c.
func (h *HTTP) write(c *conn, n uint64, target string) []byte {
	row := h.cfg.Data.row(n)
	b := append(c.out[:0], h.start...)
	if target != "" {
		b = append(b, target...)
	} else {
		b = h.target.append(b, n, row)
	}
	b = append(b, h.middle...)
	b = appendHeader(b, h.lines, n, row)
	c.filled = h.body.append(c.filled[:0], n, row)
	if m := h.cfg.Method; len(c.filled) > 0 || m == http.MethodPost || m == http.MethodPut || m == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(c.filled)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	b = append(b, c.filled...)
	c.out = b
	return b
}

// targetOf returns the request target of a URL, and whether the URL is on the host of the
// connections. An empty URL means the configured URL.
func (h *HTTP) targetOf(address string) (target string, local bool, err error) {
	if address == "" {
		return "", true, nil
	}
	if rest, ok := strings.CutPrefix(address, h.origin); ok && isPlainTarget(rest) {
		return rest, true, nil
	}
	u, err := parseURL(address)
	if err != nil {
		return "", false, err
	}
	return u.RequestURI(), u.Scheme+"://"+u.Host == h.origin, nil
}

// Reach opens a connection to the target's host, or to its proxy, and closes it again. It sends
// no request. Use it before a run to tell a wrong address from a slow server.
func (h *HTTP) Reach(ctx context.Context) error {
	u, who := h.sample.URL, "server"
	if h.common.proxy != nil {
		u, who = h.common.proxy, "proxy"
	}
	port := u.Port()
	switch {
	case port != "":
	case strings.HasPrefix(u.Scheme, "socks"):
		port = "1080"
	default:
		port = u.Scheme // net resolves it as a service name
	}
	conn, err := h.common.dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("loadgen: no %s answers at %s (%w): is the %[1]s running?", who, u.Host, err)
	}
	return conn.Close()
}

// Close closes the idle connections, also those of targets beside this one. The target remains
// usable.
func (h *HTTP) Close() { h.common.closeIdle() }
