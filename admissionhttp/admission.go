package admissionhttp

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/fair"
	"github.com/spillway-go/spillway/internal/names"
	"github.com/spillway-go/spillway/internal/processors"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/shedlog"
)

// Protect returns h behind its own adaptive limiter, in the mode of the environment variable
// SPILLWAY_MODE: enforce, the default, dryrun or off. Protect logs any other value to slog's
// default logger and then enforces: a misspelt mode must not switch the protection off. Health
// probes are exempt: see [Config.Exempt]. Refusals, and requests that a dry run would have refused, are logged to the
// same logger, in at most one line per ten seconds.
//
// The limiter cannot be drained or watched from outside. To do so, pass a limiter to New.
func Protect(h http.Handler) http.Handler {
	mode, err := ModeFromEnv()
	if err != nil {
		slog.Error("the mode is enforce", "error", err)
	}
	lim, err := ownLimiter(mode, slog.Default())
	if err == nil {
		var protect func(http.Handler) http.Handler
		if protect, err = New(Config{Limiter: lim, Logger: slog.Default()}); err == nil {
			return protect(h)
		}
	}
	panic(err) // neither configuration can be wrong
}

// New returns a middleware. All handlers that the middleware wraps share its limiter. The error
// names everything that is wrong with cfg, one fault on a line. The middleware panics for a nil
// handler when it wraps the handler, not at each request. The other functions of this package that
// take a handler do the same.
func New(cfg Config) (func(http.Handler) http.Handler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	now := time.Now()
	g := &guard{
		lim: cfg.Limiter, keyed: cfg.Keyed, class: cfg.Class,
		priority: cfg.Priority, trusted: cfg.Trusted, cost: cfg.Cost, kind: cfg.Kind,
		header: http.CanonicalHeaderKey(cmp.Or(cfg.DeadlineHeader, HeaderDeadline)),
		exempt: cfg.Exempt, long: cfg.Long, hold: cfg.Hold, outcome: cfg.Outcome,
		caller: cfg.Caller, percent: uint64(cmp.Or(cfg.EnforcePercent, 100)),
		refusal: cfg.Refusal, logger: cfg.Logger, onShedding: cfg.OnShedding,
		shedding: shedding{base: now}, hash: maphash.MakeSeed(), processors: processors.Of(now),
	}
	if cfg.DeadlineHeader == noHeader {
		g.header = ""
	}
	g.usual, g.limited = usualOf(cfg.Deadlines), len(cfg.Deadlines) > 0
	if cfg.ClientTimeout >= 0 {
		g.clients.timeout = cmp.Or(cfg.ClientTimeout, usualClientTimeout)
	}
	if g.exempt == nil {
		g.exempt, g.agents = isProbe, true
	}
	if g.caller == nil {
		g.caller = address
	}
	if cfg.FairShares {
		g.shares = &fair.Shares{}
	}
	if g.lim == nil && g.keyed == nil {
		mode, err := ModeFromEnv()
		if err != nil {
			return nil, err
		}
		if g.lim, err = ownLimiter(mode, cfg.Logger); err != nil {
			return nil, err
		}
	}
	if g.lim != nil {
		g.lim.Front()
	} else {
		g.keyed.Front()
	}
	if cfg.Logger != nil {
		g.shed = shedlog.New(shedlog.Config{Logger: cfg.Logger})
		if g.lim != nil {
			g.shed.Watch(g.lim)
			logTroubles(cfg.Logger, g.lim)
		}
	}
	return func(next http.Handler) http.Handler {
		present(next)
		own := probes(slices.Clone(cfg.Probes))
		to := &router{}
		to.mux, _ = next.(*http.ServeMux)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(own) > 0 && own.has(r) {
				next.ServeHTTP(w, r)
				return
			}
			g.serve(next, to, w, r)
		})
	}, nil
}

// present panics for a nil handler, while the program starts.
func present(h http.Handler) {
	if h == nil {
		panic("admissionhttp: the handler is nil")
	}
}

// ownLimiter returns an adaptive limiter that also logs requests that a dry run would refuse.
func ownLimiter(mode limiter.Mode, logger *slog.Logger) (*limiter.Limiter, error) {
	cfg := limiter.Config{Name: "http", Mode: mode}
	if logger == nil {
		return limiter.New(cfg)
	}
	dry := shedlog.New(shedlog.Config{Logger: logger.With("dry_run", true)})
	cfg.Observer = &limiter.Observer{WouldReject: dry.Rejected}
	lim, err := limiter.New(cfg)
	dry.Watch(lim)
	return lim, err
}

// guard is one middleware.
type guard struct {
	lim        *limiter.Limiter
	keyed      *limiter.Keyed
	class      func(*http.Request) string
	priority   func(*http.Request) spillway.Priority
	trusted    func(*http.Request) bool
	cost       func(*http.Request) int
	kind       func(*http.Request) string
	header     string // name of the deadline header; empty: none
	usual      usual
	limited    bool // there are Deadlines
	exempt     func(*http.Request) bool
	agents     bool // health checks are exempt by their User-Agent
	long       func(*http.Request) bool
	hold       bool
	outcome    func(int, http.Header, error) error
	caller     func(*http.Request) string
	shares     *fair.Shares // nil: no FairShares
	percent    uint64
	refusal    func(http.ResponseWriter, *http.Request, int)
	logger     *slog.Logger
	shed       *shedlog.Log // nil: no log
	onShedding func()       // nil: none
	hash       maphash.Seed
	processors *processors.Monitor // nil in virtual time

	shedding shedding
	byAgent  atomic.Int32 // requests that run exempt by their User-Agent
	broken   atomic.Int64 // when an error of Keyed was last logged

	clients     clients
	silent, cut tally // clients that did not move, and answers that a deadline cut
}

// serve admits r and runs next, or refuses r. to finds the route that r will have in next.
func (g *guard) serve(next http.Handler, to *router, w http.ResponseWriter, r *http.Request) {
	if g.exempt(r) {
		next.ServeHTTP(w, r)
		return
	}
	if g.agents && g.servedByAgent(next, w, r) {
		return
	}
	class := ""
	if g.keyed != nil {
		class = names.Bounded(g.class(r))
	}
	if g.admitted(r.Context(), w, class) {
		next.ServeHTTP(w, r)
		return
	}
	ctx, changed := g.prioritized(r)
	var req limiter.Request
	if g.cost != nil {
		req.Cost = g.cost(r)
	}
	req.Kind = g.kindOf(ctx, to, r)
	req.DryRun = g.percent < 100 && fair.Hash(g.caller(r))%100 >= g.percent

	stream := r.Method == http.MethodConnect && r.ProtoMajor > 1 // an HTTP/1 tunnel is hijacked
	if g.long != nil {
		stream = g.long(r)
		req.Long = stream
	}
	delay := g.processors.Delay()
	if delay > 0 && !g.enforces(class, req.DryRun) {
		delay = 0
	}
	limited, lasting := ctx, ctx
	said, usual := g.deadlines(ctx, r, delay)
	timed := said >= 0 || usual >= 0
	if timed {
		var cancel context.CancelFunc
		limited, lasting, cancel = g.limits(ctx, r, stream, said, usual)
		defer cancel()
	}
	permit, t, err := g.acquire(limited, r, class, req)
	if err != nil && (errors.Is(err, spillway.ErrRejected) || g.enforces(class, req.DryRun)) {
		g.refuse(w, r, spillway.PriorityFrom(ctx), err)
		return
	}
	var a *work
	var p *posted
	if hasBody(r) {
		p = &posted{}
		a = &p.work
	} else {
		a = &work{}
	}
	a.ResponseWriter, a.guard, a.class, a.permit, a.ticket = w, g, class, permit, t
	a.dryRun, a.stream, a.long = req.DryRun, stream, req.Long
	a.held.Store(1)
	if timed && limited != ctx && g.enforces(class, req.DryRun) {
		ctx, changed = limited, true
		if lasting != limited {
			var cancel context.CancelFunc
			ctx, a.proven, cancel = untilProven(lasting, limited)
			defer cancel()
		}
		a.limited = true
	}
	if changed || g.hold {
		a.scope = scope{ctx, a}
	}
	switch {
	case p != nil:
		p.serve(next, r)
	case a.scope.work == nil:
		a.run(next, r)
	default:
		with(&a.scope, r, func(r *http.Request) { a.run(next, r) })
	}
}

// acquire asks the limiter.
func (g *guard) acquire(ctx context.Context, r *http.Request, class string, req limiter.Request) (p limiter.Permit, t ticket, err error) {
	switch {
	case g.keyed != nil:
		p, err = g.keyed.AcquireWith(ctx, class, req)
	case g.shares != nil && !req.Long: // a share is of slots
		p, t, err = g.acquireShare(ctx, r, req)
	default:
		p, err = g.lim.AcquireWith(ctx, req)
	}
	return p, t, err
}

// acquireShare counts the request in its caller's share while the request waits or runs.
func (g *guard) acquireShare(ctx context.Context, r *http.Request, req limiter.Request) (p limiter.Permit, t ticket, err error) {
	caller := maphash.String(g.hash, g.caller(r))
	t, req.OverShare = g.shares.Enter(time.Since(g.shedding.base), caller, cmp.Or(req.Cost, spillway.CostFrom(ctx)), g.lim.Limit())
	returned := false
	defer func() {
		if !returned || err != nil {
			g.leave(&t)
		}
	}()
	p, err = g.lim.AcquireWith(ctx, req)
	if err == nil {
		g.shares.Start(time.Since(g.shedding.base), &t)
	}
	returned = true
	return p, t, err
}

// enforces reports whether decisions about the request take effect.
func (g *guard) enforces(class string, dryRun bool) bool {
	if dryRun {
		return false
	}
	lim := g.lim
	if g.keyed != nil {
		var err error
		if lim, err = g.keyed.Get(class); err != nil {
			return true
		}
	}
	return lim.Mode() == limiter.Enforce
}

// prioritized returns the context of r with the priority of the request.
func (g *guard) prioritized(r *http.Request) (ctx context.Context, changed bool) {
	ctx = r.Context()
	if g.trusted == nil && g.priority == nil {
		return ctx, false
	}
	p, said := spillway.Normal, false
	if g.trusted != nil {
		if text := r.Header[HeaderPriority]; len(text) == 1 && g.trusted(r) {
			said = p.UnmarshalText([]byte(text[0])) == nil
		}
	}
	if !said && g.priority != nil {
		p, said = g.priority(r), true
	}
	if said && p != spillway.PriorityFrom(ctx) {
		return spillway.WithPriority(ctx, p), true
	}
	return ctx, false
}

// address returns the IP address of the connection. For IPv6 it returns the /64 network, because
// one subscriber has all addresses in it.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if !strings.Contains(host, ":") {
		return host
	}
	if ip, err := netip.ParseAddr(host); err == nil && !ip.Is4In6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.Addr().String()
		}
	}
	return host
}

// ticket is one request counted in its caller's share.
type ticket = fair.Ticket

// leave removes t from its caller's share, once.
func (g *guard) leave(t *ticket) {
	if g.shares != nil {
		g.leaveShare(t)
	}
}

func (g *guard) leaveShare(t *ticket) { g.shares.Leave(time.Since(g.shedding.base), t) }
