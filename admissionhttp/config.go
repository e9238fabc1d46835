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

// Config says what the middleware does. The zero value works: it is an adaptive
// limiter whose mode SPILLWAY_MODE says. The functions are called on the request's
// goroutine, before its body is read, and must not read it. Fields may be added.
type Config struct {
	// Limiter decides. Nil means an adaptive one, in the mode of ModeFromEnv.
	Limiter *limiter.Limiter
	// Keyed decides in place of Limiter, by the class of a request: a limiter for
	// each kind of route or dependency. It needs Class.
	Keyed *limiter.Keyed
	// Class names the class. Classes become labels of metrics: name routes, such as
	// by r.Pattern, not callers. Names beyond 128 bytes are replaced by a hash.
	Class func(*http.Request) string

	// Priority says how important a request is. Nil means the priority of the
	// request's context, which a route or other middleware may have set. A header
	// from a trusted caller goes before both.
	Priority func(*http.Request) spillway.Priority
	// Trusted says whose Spillway-Priority header is believed: low, normal, high or
	// critical. Nil means that of no caller.
	Trusted func(*http.Request) bool
	// Cost is how many slots a request takes. Nil means the cost of its context, or
	// one.
	Cost func(*http.Request) int
	// Kind names the kind of a request, for its limiter: work is compared with work of
	// the same kind (spillway.WithKind). Nil, or an empty name, means the kind of its
	// context, or its route: the pattern by which an http.ServeMux, or another router that
	// sets r.Pattern, found the middleware, or by which the ServeMux that the middleware
	// protects will find the handler. Around other routers it needs a function. A pattern
	// for all paths below one, such as "/", is no route: what is there may have routes of
	// its own.
	Kind func(*http.Request) string

	// Deadlines are how long a request of a priority may take, its wait included,
	// unless its context or header says less. Streams have none. Zero means none. Where
	// nothing is enforced they are foreseen and do not end the request's context.
	Deadlines map[spillway.Priority]time.Duration
	// DeadlineHeader names the header in which a caller says how long it will wait:
	// whole milliseconds, or with a unit as in grpc-timeout (H, M, S, m, u, n), in at
	// most eight digits. It only ever makes a deadline earlier. Empty means
	// Spillway-Deadline, "-" none.
	DeadlineHeader string

	// Exempt says which requests are not counted, limited or delayed. Nil means
	// [Probe].
	Exempt func(*http.Request) bool
	// Long says which requests will be streams: they get no deadline from Deadlines,
	// and are counted apart from their first flush. Nil means those that ask for an
	// upgrade or for text/event-stream, and CONNECT; as any client can claim that,
	// these must also answer with a stream, and have the deadline until they do: CONNECT
	// by Hijack, or in HTTP/2 by a flush. A function takes the place of that: it names
	// those requests too. An answer of text/event-stream is counted apart whatever it says.
	Long func(*http.Request) bool
	// Hold puts the slot into the request's context, for the function Hold. It costs
	// a copy of the request.
	Hold bool
	// Outcome says what an answer teaches the limiter: the error for Permit.Done.
	// It must not keep or change the header. Nil means DefaultOutcome.
	Outcome func(status int, header http.Header) error

	// Caller says on whose behalf a request comes, for FairShares and
	// EnforcePercent: an authenticated name, as one that can be made up has a share
	// for each name. Nil means the IP address of the connection, and of IPv6 its /64.
	Caller func(*http.Request) string
	// FairShares keeps one caller from taking the queue: while several are active, a
	// caller with more than an equal part of the work, and more than one request, is
	// refused with 429 where it would have to wait, whatever the request's priority. It
	// needs a Limiter, not Keyed.
	FairShares bool
	// EnforcePercent enforces for this part of the callers only, from 1 to 100, always
	// the same ones; for others there is a dry run, and nothing bounds how much of
	// their work runs. Zero means all. It is fixed in a middleware: to change it without
	// a restart, make another one over the same Limiter and switch between them.
	EnforcePercent int
	// EnforceSeed makes another choice of callers. Replicas need the same one.
	EnforceSeed uint64

	// Refusal writes the answer to a request that was refused. The headers
	// Retry-After, Spillway-Reason and Cache-Control are set before; it writes the
	// status and the body. Nil means application/problem+json.
	Refusal func(http.ResponseWriter, *http.Request, Refusal)

	// Logger is told of refusals by package shedlog, in at most one line a LogEvery,
	// which has counts and nothing of a request. Nil means none.
	Logger *slog.Logger
	// LogEvery is ten seconds unless said otherwise.
	LogEvery time.Duration
	// Recording writes a flight recording at the onset of shedding. Nil means none.
	Recording *Recording
}

// Names of headers. Reason is that of a refusal, such as queue_full.
const (
	HeaderPriority = "Spillway-Priority"
	HeaderDeadline = "Spillway-Deadline"
	HeaderReason   = "Spillway-Reason"
)

// ModeVariable is the environment variable that ModeFromEnv reads.
const ModeVariable = "SPILLWAY_MODE"

// ModeFromEnv returns the mode that the environment asks for: off, dryrun or
// enforce. Unset or empty means limiter.Enforce, and so does anything else, with an
// error.
func ModeFromEnv() (limiter.Mode, error) {
	text := os.Getenv(ModeVariable)
	if text == "" {
		return limiter.Enforce, nil
	}
	m, err := limiter.ParseMode(text)
	if err != nil {
		return limiter.Enforce, fmt.Errorf("admissionhttp: %s: %w", ModeVariable, err)
	}
	return m, nil
}

// check returns all that is wrong with the configuration.
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
		}
	}
	if cfg.LogEvery < 0 {
		fault("LogEvery is %v: it cannot be negative (zero means %v)", cfg.LogEvery, defaultLogEvery)
	}
	if h := cfg.DeadlineHeader; h != "" && h != noHeader && !isToken(h) {
		fault("DeadlineHeader is %.40q: a name has letters, digits, hyphens and underscores; empty means %s, %q none", h, HeaderDeadline, noHeader)
	}
	if cfg.Recording != nil {
		if err := cfg.Recording.check(); err != nil {
			fault("%w", err)
		}
	}
	return errors.Join(wrong...)
}

const noHeader = "-"

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
