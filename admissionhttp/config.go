package admissionhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// Config configures the middleware. The zero value works: it means an adaptive limiter in the mode
// of SPILLWAY_MODE. The functions run on the request's goroutine, before the request's body is
// read, and must not read the body. Fields may be added.
type Config struct {
	// Limiter admits requests. Nil means an adaptive limiter in the mode of ModeFromEnv.
	Limiter *limiter.Limiter
	// Keyed replaces Limiter by one limiter for each class of requests, such as a kind of route or
	// a dependency. Keyed needs Class.
	Keyed *limiter.Keyed
	// Class returns the class of a request. Classes become labels of metrics: use names of routes,
	// such as r.Pattern, not of callers. A name beyond 128 bytes is replaced by its first 63 bytes and a hash.
	Class func(*http.Request) string

	// Priority returns the priority of a request. Nil means the priority of the request's context,
	// which a route or other middleware outside of this middleware may have set. The header of a
	// trusted caller overrides both.
	Priority func(*http.Request) spillway.Priority
	// Trusted reports whether to honor a request's Spillway-Priority header: low, normal, high or
	// critical. Nil honors the header of no caller.
	Trusted func(*http.Request) bool
	// Cost returns how many slots a request takes. Nil means the cost of the request's context, or
	// one.
	Cost func(*http.Request) int
	// Kind returns the kind of a request. The limiter compares work with work of the same kind only
	// (spillway.WithKind). If Kind is nil or returns an empty name, the kind of the request's
	// context applies, or else the route. The route is r.Pattern, set by an http.ServeMux or
	// another router around the middleware. Without r.Pattern, it is the pattern for r in the
	// ServeMux that the middleware protects. A middleware around other routers needs a Kind
	// function. A pattern for all paths below a path, such as "/", is no route, because routes may
	// exist below it.
	Kind func(*http.Request) string

	// Deadlines limit the time of a request, including its wait, by priority. A priority without an
	// entry has the deadline of the nearest priority that has one; of two that are equally near, the
	// shorter. So one entry is for all. Zero means none, and anything above is at least a millisecond.
	// An earlier deadline of the request's context or header prevails. Streams have no deadline. Where
	// decisions are not enforced, the limiter predicts with Deadlines, but the request's context
	// does not end.
	//
	// An answer that a deadline ends in its middle must not look complete: the middleware then closes
	// the connection, or resets the stream of HTTP/2, by http.ErrAbortHandler, when the handler has
	// returned. It does so if a part of the answer was sent before the deadline, and a part of the
	// Content-Length is missing. Without a Content-Length a part counts as missing if the handler
	// wrote nothing after the deadline, as when its query ended with the context; or if the handler
	// tried to change the status to an error; or if the answer has a Content-Encoding, since an
	// encoder ends what it has. A handler that writes on after the deadline has ended the answer
	// itself. Declare a Content-Length where a handler works on after it has written all.
	Deadlines map[spillway.Priority]time.Duration
	// DeadlineHeader names the header in which a caller sends how long it will wait: whole
	// milliseconds, or a number with a unit of grpc-timeout (H, M, S, m, u, n), in at most eight
	// digits. The header can only make a deadline earlier. Empty means Spillway-Deadline, "-" none.
	DeadlineHeader string

	// Exempt reports requests that are not counted, limited or delayed. Nil means probes: a GET or HEAD
	// of a path that platforms use for health, metrics or profiles, with or without a slash at the end:
	//
	//	/livez /readyz /healthz /startupz /health /live /ready /up /ping /metrics
	//	/health/live /health/ready /api/health /-/healthy /-/ready
	//	/actuator/health and /debug/pprof, and all below these two
	//
	// A client that can reach these paths may call them without a bound. Keep expensive handlers off
	// these paths, or on their own listener. If one of the paths belongs to your API, set a function: a
	// function replaces this default, so name the paths of your probes in Probes.
	//
	// Nil also means a GET or HEAD with the User-Agent of a health check (kube-probe/, GoogleHC/,
	// ELB-HealthChecker/). Any client can send that User-Agent, so at most four such requests run at a
	// time; further ones are admitted like other requests. An attacker gets four requests past the
	// limiter by it, and can take their places from the health checks.
	Exempt func(*http.Request) bool
	// Probes are paths of further probes, in addition to Exempt: a GET or HEAD of such a path, with or
	// without a slash at the end, is exempt. A path with a slash at the end stands for all below it
	// too. Clients may call these paths without a bound.
	Probes []string
	// Long reports requests that take long by nature: streams, long polls, large downloads and
	// uploads. Such requests get no deadline from Deadlines. They wait for room like other requests,
	// hold no slot from their admission on, and are counted apart; Limiter.Drain waits for them.
	// Nothing bounds how many run: give them a limiter of their own, outside (see the example
	// Streams). Decide by the route, such as by r.URL.Path, and not by a header, because any client
	// can send a header.
	//
	// Nil means CONNECT, and requests for an upgrade or for text/event-stream. Any client can claim
	// to be such a request, so it keeps its deadline and holds a slot until it answers with a
	// stream. CONNECT does so by Hijack, or in HTTP/2 by a flush. A function replaces this default,
	// so it must report the routes of such requests too. Upgraded connections and answers of
	// text/event-stream are always counted apart.
	Long func(*http.Request) bool
	// ClientTimeout is how long a client may stand still while the handler waits for it: send
	// nothing of a body that is read before the answer has begun, or take nothing of an answer. Then
	// the read or write fails, or in HTTP/2 the stream is reset. A client that moves has any time.
	// Reads have no bound once the answer has begun, because in both directions at once a client may
	// wait for the answer. Timeouts of http.Server apply too. Zero means 30 seconds, negative none.
	// A client has up to a quarter more. ClientTimeout also bounds how long net/http writes the rest
	// of an answer of more than a few kilobytes, unless http.Server.WriteTimeout does. A client that
	// reads nothing of a whole HTTP/2 connection is ended only by http.HTTP2Config.WriteByteTimeout.
	// A dry run cuts off nobody.
	ClientTimeout time.Duration
	// Hold puts the slot into the request's context, for the function Hold. It costs a copy of the
	// request.
	Hold bool
	// Outcome returns the outcome of an answer for the limiter: the error for Permit.Done. Usual is
	// the outcome without this function: nil, a sample, for a status below 500 apart from 408 and 429;
	// spillway.ErrRejected for 503 with Retry-After; context.DeadlineExceeded for 504; and for any other
	// status another error, no sample. Neither a caller's quota (429) nor the time that a client took
	// for its body (408) shows the capacity, and a broken service fails fast. A 503 from a service below
	// for deadline_too_close or budget is no sample: clients choose their deadlines, and other replicas
	// use up a shared budget. Outcome must not keep or change the header.
	Outcome func(status int, header http.Header, usual error) error

	// Caller identifies the caller of a request, for FairShares and EnforcePercent. Use an
	// authenticated name: a caller that can make up names has a share for each name. Nil means the
	// IP address of the connection, and for IPv6 its /64.
	Caller func(*http.Request) string
	// FairShares keeps one caller from taking the slots and the queue. While several callers are
	// active, a caller that uses more than an equal part is refused with 429 where its request would
	// have to wait, whatever the priority, unless it has no other request. What a caller uses is the
	// slots that its requests hold, now and on average over some seconds, so long requests use more than
	// short ones. A request that waits uses nothing, but of those that wait, too, one caller has no more
	// than an equal part. A stream uses nothing, and neither does a request while its handler waits for its
	// client. FairShares needs a Limiter, not Keyed.
	FairShares bool
	// EnforcePercent enforces decisions for this percentage of the callers, from 1 to 100, always
	// the same ones. For other callers there is a dry run, and nothing bounds how much of their
	// work runs. Zero means all. The name of a caller alone decides, so all replicas choose the same
	// callers. The percentage of a middleware is fixed: to change it without a restart, make another
	// middleware over the same Limiter and switch between them.
	EnforcePercent int

	// Refusal writes the answer to a refused request: the status and the body. The status is 503 for a
	// lack of capacity, 429 for one caller's quota, and 499 for a client that left while its request
	// waited. The headers Retry-After, Spillway-Reason and Cache-Control are already set. Nil means
	// application/problem+json.
	Refusal func(w http.ResponseWriter, r *http.Request, status int)

	// Logger receives refusals from package shedlog, in at most one line per ten seconds, with counts
	// and no data of a request. Nil means none. What a dry run would have refused is logged
	// only if Limiter and Keyed are nil. For another limiter, make its observer log a dry run: see
	// shedlog.Log.Rejected. If Keyed is nil, the Logger also receives what the page of DebugHandler
	// would say first when work fails, is lost or does not end, with what to do: at the onset, once a
	// minute, and when the trouble is over.
	Logger *slog.Logger
	// OnShedding is called when shedding begins: for the first refusal for lack of capacity in a second,
	// and at most once a minute. Each call has its own goroutine and may take long: write what a
	// trace.FlightRecorder has, for the seconds before the onset, or a profile. A call that takes more
	// than a minute may overlap the next. Nil means none.
	OnShedding func()
}

// Names of headers. HeaderReason has the reason of a refusal, such as queue_full.
const (
	HeaderPriority = "Spillway-Priority"
	HeaderDeadline = "Spillway-Deadline"
	HeaderReason   = "Spillway-Reason"
)

// modeVariable is the environment variable that ModeFromEnv reads.
const modeVariable = "SPILLWAY_MODE"

// ModeFromEnv returns the mode in SPILLWAY_MODE: off, dryrun or enforce. Unset or empty means
// limiter.Enforce. Any other value means limiter.Enforce too, with an error.
func ModeFromEnv() (limiter.Mode, error) {
	text := os.Getenv(modeVariable)
	if text == "" {
		return limiter.Enforce, nil
	}
	var m limiter.Mode
	if err := m.UnmarshalText([]byte(text)); err != nil {
		return limiter.Enforce, fmt.Errorf("admissionhttp: %s: %w", modeVariable, err)
	}
	return m, nil
}

// check returns all faults of the configuration.
func (cfg *Config) check() error {
	var wrong []error
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("admissionhttp: "+format, args...)) }
	if cfg.Limiter != nil && cfg.Keyed != nil {
		fault("there is a Limiter and a Keyed: give one of them")
	}
	if cfg.Keyed != nil && cfg.Class == nil {
		fault("Keyed needs Class, such as func(r *http.Request) string { return r.Pattern }")
	}
	if cfg.Keyed == nil && cfg.Class != nil {
		fault("Class needs Keyed: one Limiter has no classes")
	}
	if cfg.FairShares && cfg.Keyed != nil {
		fault("FairShares needs one Limiter and cannot be used with Keyed")
	}
	if cfg.EnforcePercent < 0 || cfg.EnforcePercent > 100 {
		fault("EnforcePercent is %d: use 1 to 100 (zero means 100), or the mode DryRun for none", cfg.EnforcePercent)
	}
	for p, d := range cfg.Deadlines {
		if p < spillway.Low || p > spillway.Critical {
			fault("Deadlines: there is no %v", p)
		} else if d < 0 {
			fault("Deadlines: %v has %v, which cannot be negative (zero means none)", p, d)
		} else if d > 0 && d < time.Millisecond {
			fault("Deadlines: %v has %v: %s", p, d, nanoseconds)
		}
	}
	if d := cfg.ClientTimeout; d > 0 && d < time.Millisecond {
		fault("ClientTimeout is %v: %s", d, nanoseconds)
	}
	if h := cfg.DeadlineHeader; h != "" && h != noHeader && !isToken(h) {
		fault("DeadlineHeader is %.40q: a name has letters, digits, hyphens and underscores; empty means %s, %q none", h, HeaderDeadline, noHeader)
	}
	if err := probes(cfg.Probes).check(); err != nil {
		fault("Probes: %w", err)
	}
	return errors.Join(wrong...)
}

const noHeader = "-"

// nanoseconds is what is wrong with a duration that is a number without a unit.
const nanoseconds = "the least is 1ms, and a plain number counts nanoseconds (write 2*time.Second)"

// isToken reports whether name can be the name of a header.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return name != ""
}
