// Package admissiongrpc puts a limiter in front of the methods of a gRPC server.
//
//	admission, err := admissiongrpc.New(admissiongrpc.Config{})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(recovery, authenticate, admission.UnaryServerInterceptor),
//		grpc.ChainStreamInterceptor(recoveryStream, authenticateStream, admission.StreamServerInterceptor),
//	)
//
// A call that is refused is answered UNAVAILABLE, or RESOURCE_EXHAUSTED when the
// caller's own quota is used up. Both say when to come back, as RetryInfo in the
// status and as grpc-retry-pushback-ms in the trailer, which gRPC clients with a
// retry policy obey; the trailer spillway-reason says why.
//
// # Order
//
// Interceptors that recover panics, authenticate and audit come before admission: the
// slot comes back when a handler panics, and Trusted can read what authentication
// found. What does work for the call comes after it. To shut down: first the health
// service says NOT_SERVING, then, once the callers have seen it, the limiter drains,
// then comes Server.GracefulStop. Drain waits for streams too: give it a deadline,
// and Server.Stop ends what is left. GracefulStop returns only when every handler has,
// and so does a Stop that comes while it waits: call each on a goroutine of its own.
//
// # Kinds
//
// A call is compared with others of its method (spillway.WithKind), unless its context
// says another kind.
//
// # Streams
//
// A stream is admitted when its first message has arrived, as a unary call is, or
// when its handler sends before that: streams whose client sends nothing hold no
// slot. It holds its slot until its handler sends a message or asks for the next one.
// From then on most of its time may be spent waiting for the client, so it is long
// (limiter.Request.Long): it runs on without a slot and is no sample. Config.Short
// names streams for which that is wrong.
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

// Config says what the interceptors do. The zero value works. The functions are
// called on the goroutine of the call; fullMethod is "/package.service/method". Fields
// may be added.
type Config struct {
	// Limiter decides. Nil, without Keyed, means an adaptive one in the mode that the
	// environment variable SPILLWAY_MODE names: off, dryrun or enforce, which is also
	// what none means.
	Limiter *limiter.Limiter
	// Keyed decides in place of Limiter, with a limiter for each class of methods.
	Keyed *limiter.Keyed
	// Class names the class of a method, for Keyed. Nil means the method itself. A
	// server with grpc.UnknownServiceHandler needs one, as there callers choose the
	// names.
	Class func(fullMethod string) string

	// Priority says how important a call is. Nil means what its context says. The
	// metadata of a trusted caller goes before both. The context of the handler
	// carries what was found.
	Priority func(ctx context.Context, fullMethod string) spillway.Priority
	// Cost is how many slots a call takes. Nil means the cost of its context, or one.
	// The metadata of a trusted caller goes before both.
	Cost func(ctx context.Context, fullMethod string) int
	// Trusted says whose spillway-priority and spillway-cost are believed: read the
	// peer of the context, or what authentication put there. Nil means those of no
	// caller.
	Trusted func(ctx context.Context) bool

	// Deadlines are how long a call of a priority may take, its wait included, unless
	// its context says less. Streams have none unless they are Short. Zero means none.
	// A dry run counts with them, and leaves the handler its context as it is.
	Deadlines map[spillway.Priority]time.Duration

	// Short names streams that are short work all the same, such as the rows of a
	// query. They hold their slot until they end and are samples, but a client that
	// reads slowly holds it as long. Nil means none.
	Short func(fullMethod string) bool
	// Exempt names methods that are not counted, limited or delayed, beside those of
	// the service grpc.health.v1.Health, which never are. Nil means no others.
	Exempt func(fullMethod string) bool
}

// ModeVariable is the environment variable that says the mode of a server without a
// limiter of its own.
const ModeVariable = "SPILLWAY_MODE"

// Interceptor holds the interceptors of a server. It is safe for concurrent use and
// has no goroutine. New makes one.
type Interceptor struct {
	cfg Config
}

// New returns the interceptors for cfg. The error names every field that is wrong,
// one on a line, and a SPILLWAY_MODE that is no mode.
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
		}
	}
	if cfg.Limiter == nil && cfg.Keyed == nil {
		mode, err := limiter.ParseMode(cmp.Or(os.Getenv(ModeVariable), "enforce"))
		if err != nil {
			fault("%s: %w", ModeVariable, err)
		}
		cfg.Limiter, err = limiter.New(limiter.Config{Name: "grpc", Mode: mode})
		if err != nil {
			fault("%w", err)
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return &Interceptor{cfg}, nil
}

// Limiter returns the limiter that decides, for its Stats, SetMode and Drain. It is nil
// with Keyed.
func (i *Interceptor) Limiter() *limiter.Limiter { return i.cfg.Limiter }

const healthService = "/grpc.health.v1.Health/"

func (i *Interceptor) exempt(fullMethod string) bool {
	return strings.HasPrefix(fullMethod, healthService) || i.cfg.Exempt != nil && i.cfg.Exempt(fullMethod)
}
