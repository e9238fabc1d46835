// Package admissiongrpc puts a limiter in front of the methods of a gRPC server.
//
//	admission, err := admissiongrpc.New(admissiongrpc.Config{})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(recovery, authenticate, admission.UnaryServerInterceptor),
//		grpc.ChainStreamInterceptor(recoveryStream, authenticateStream, admission.StreamServerInterceptor),
//	)
//
// A refused call is answered UNAVAILABLE, or RESOURCE_EXHAUSTED when the caller's own quota is used
// up. Both answers carry the time for a retry, as RetryInfo in the status and as
// grpc-retry-pushback-ms in the trailer, which gRPC clients with a retry policy obey. The trailer
// spillway-reason carries the reason.
//
// # Order
//
// Interceptors that recover panics, authenticate and audit come before admission: the slot is freed
// when a handler panics, and Trusted can read the result of authentication. Interceptors that do
// work for the call come after admission.
//
// To shut down, set the health service to NOT_SERVING. Once the callers have seen that status, drain
// the limiter, then call Server.GracefulStop. Drain waits for streams too: give Drain a deadline,
// and end the remaining streams with Server.Stop. GracefulStop returns only when every handler has
// returned, and so does a Stop during GracefulStop: call each on its own goroutine.
//
// # Kinds
//
// The limiter compares a call with other calls of its method (spillway.WithKind), unless the
// context of the call has another kind.
//
// # Streams
//
// A stream is admitted when its first message has arrived, like a unary call, or when its handler
// sends a message earlier. Streams whose client sends nothing hold no slot. A stream holds its slot
// until its handler sends a message or asks for the next one. From then on the stream may mostly
// wait for its client, so it is long (limiter.Request.Long): it continues without a slot and is no
// sample. The limiter of the server does not bound long streams: bound them by a limiter of their
// own.
//
// Config.Long reports what is long from its admission on: a subscription whose first event may take
// an hour, or a unary call that waits for a lock.
//
// Config.Short reports streams that keep their slot to the end, such as the rows of a query. Their
// client takes none of it: while the handler waits in SendMsg for the client to read, or in RecvMsg
// for the client to send, the permit is paused (limiter.Permit.Pause). A handler may receive in one
// goroutine and work in another. A message that it sends while it receives shows this, and from then
// on only SendMsg pauses. Before that message its work is not seen, so the method of a handler that
// works for long before it sends should not be Short.
//
// gRPC reads the message of a unary call before the interceptor runs, and writes the answer
// afterwards. A slow client holds no slot there.
//
// # Clients that stall
//
// A client that is alive and does not read blocks SendMsg for ever. Config.ClientTimeout ends such
// a stream: SendMsg and RecvMsg return an error, and the context of the handler ends. gRPC keeps
// what was sent, at most 64 KiB and a message, until the client reads or the connection ends. The
// time is no bound for a client that is silent after the handler has sent: it may wait for more.
// keepalive.ServerParameters bound the rest: Time and Timeout find dead connections,
// MaxConnectionAge with MaxConnectionAgeGrace ends all others. grpc.MaxConcurrentStreams bounds the
// calls of one connection, also those whose message never arrives. Under Server.ServeHTTP, where
// net/http sends, only http.Server.WriteTimeout ends a client that does not read.
//
// # Interceptors in a chain
//
// Interceptors over one limiter may be in one chain, such as one for all servers and one of a service: a
// call takes one slot, by the interceptor that comes first, and the others pass the call on, whatever their
// settings. They find the first one through the context of the call.
//
// # Cost
//
// The module brings gRPC. An admitted call costs one allocation. "go test ./admissiongrpc -run
// Alloc" tests the allocations, and "go test ./admissiongrpc -run '^$' -bench ." prints the times.
//
// # Pitfalls
//
//   - Clients that do not read trailers still see UNAVAILABLE. If such clients retry at once, the
//     limiter cannot keep them from asking.
package admissiongrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// Config configures the interceptors. The zero value works. The functions are called on the
// goroutine of the call; fullMethod is "/package.service/method". Fields may be added.
type Config struct {
	// Limiter admits calls. If Limiter and Keyed are nil, an adaptive limiter does so, in the mode
	// of the environment variable SPILLWAY_MODE: off, dryrun or enforce, the default. That limiter
	// cannot be drained or watched from outside.
	Limiter *limiter.Limiter
	// Keyed replaces Limiter, with one limiter for each class of methods.
	Keyed *limiter.Keyed
	// Class returns the class of a method, for Keyed. Nil means the method itself. A server with
	// grpc.UnknownServiceHandler needs Class, because there callers choose the names of methods.
	Class func(fullMethod string) string

	// Priority returns the priority of a call. Nil means the priority of its context. The metadata
	// of a trusted caller overrides both. The handler's context carries the resulting priority.
	Priority func(ctx context.Context, fullMethod string) spillway.Priority
	// Cost returns how many slots a call takes. Nil means the cost of its context, or one. The
	// metadata of a trusted caller overrides both.
	Cost func(ctx context.Context, fullMethod string) int
	// Trusted reports whether to honor the metadata of a call: spillway-priority, which is low,
	// normal, high or critical, and spillway-cost, a whole number of slots from 1. Read the peer in
	// ctx, or the result of authentication there. Nil honors the metadata of no caller.
	Trusted func(ctx context.Context) bool

	// Deadlines limit the time of a call, including its wait, by priority. A priority without an
	// entry has the deadline of the nearest priority that has one; of two that are equally near, the
	// shorter. So one entry is for all. Zero means none, and anything above is at least a millisecond.
	// An earlier deadline of the call's context prevails. Streams have no deadline unless they are
	// Short. In a dry run, the limiter decides with Deadlines, but the handler's context is unchanged.
	Deadlines map[spillway.Priority]time.Duration

	// Long reports methods whose calls mostly wait, unary ones too: for a lock, for an event, for
	// the next entry of a queue. Such a call is admitted when there is room, holds no slot from then
	// on and is no sample (limiter.Request.Long). It has no deadline from Deadlines. Nil means none.
	Long func(fullMethod string) bool
	// Short reports streams that are short work, such as the rows of a query or an upload. They hold
	// their slot while their handler works and are samples of the time it works. See Streams in the
	// package comment for what is no work. Nil means none. Long prevails.
	Short func(fullMethod string) bool
	// ClientTimeout ends a stream with DEADLINE_EXCEEDED once its handler has waited so long, at a
	// stretch, for the client to read. It also ends a Short stream whose client is so long silent
	// while the handler receives and has sent nothing yet. Zero means a minute for Short streams and
	// no bound for others; negative means no bound. A client that reads slowly needs a bound in
	// which it reads a quarter of its window, usually 16 KiB. A dry run ends no stream.
	ClientTimeout time.Duration
	// Exempt reports methods that are not counted, limited or delayed. The methods of the service
	// grpc.health.v1.Health are always exempt: Check, List and Watch. Nil means no others: those of
	// reflection and channelz are calls like any other.
	Exempt func(fullMethod string) bool
}

// modeVariable is the environment variable with the mode of a server that has neither
// Config.Limiter nor Config.Keyed.
const modeVariable = "SPILLWAY_MODE"

// nanoseconds is what is wrong with a duration that is a number without a unit.
const nanoseconds = "the least is 1ms, and a plain number counts nanoseconds (write 2*time.Second)"

// Interceptor holds the interceptors of a server. It is safe for concurrent use and
// has no goroutine. New makes one.
type Interceptor struct {
	cfg Config
}

// New returns the interceptors for cfg. The error names every invalid field, one on a line, and an
// invalid SPILLWAY_MODE.
func New(cfg Config) (*Interceptor, error) {
	var wrong []error
	fault := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("admissiongrpc: "+format, args...))
	}
	if cfg.Limiter != nil && cfg.Keyed != nil {
		fault("there is a Limiter and a Keyed: give one of them")
	}
	if cfg.Class != nil && cfg.Keyed == nil {
		fault("Class needs Keyed: one Limiter has no classes")
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
	if cfg.Limiter == nil && cfg.Keyed == nil {
		var mode limiter.Mode
		err := mode.UnmarshalText([]byte(cmp.Or(os.Getenv(modeVariable), "enforce")))
		if err != nil {
			fault("%s: %w", modeVariable, err)
		}
		cfg.Limiter, err = limiter.New(limiter.Config{Name: "grpc", Mode: mode})
		if err != nil {
			fault("%w", err)
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if cfg.Keyed != nil {
		cfg.Keyed.Front()
	} else {
		cfg.Limiter.Front()
	}
	cfg.Deadlines = complete(cfg.Deadlines)
	return &Interceptor{cfg}, nil
}

// complete returns Config.Deadlines with an entry for each priority, unless entries is empty.
func complete(entries map[spillway.Priority]time.Duration) map[spillway.Priority]time.Duration {
	all := map[spillway.Priority]time.Duration{}
	for p := spillway.Low; p <= spillway.Critical; p++ {
		nearest := spillway.Critical - spillway.Low + 1
		for q, d := range entries {
			switch away := max(p-q, q-p); {
			case away < nearest:
				nearest, all[p] = away, d
			case away == nearest && d > 0 && (d < all[p] || all[p] == 0):
				all[p] = d
			}
		}
	}
	return all
}

const healthService = "/grpc.health.v1.Health/"

func (i *Interceptor) exempt(fullMethod string) bool {
	return strings.HasPrefix(fullMethod, healthService) || i.cfg.Exempt != nil && i.cfg.Exempt(fullMethod)
}
