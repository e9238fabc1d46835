// Package jetstream keeps durable jobs in NATS JetStream: in a server of this process
// (package embedded), or in a cluster by URL.
//
//	server, err := embedded.Start(embedded.Config{Dir: "/var/lib/orders/jobs"})
//	queue, err := jetstream.Open(ctx, jetstream.Config{Server: server})
//
// A queue is four streams. One holds the jobs: a subject and a consumer for each
// priority, and a subject for each delayed job. One holds dead letters, because
// JetStream has none. One holds as many messages as handlers may run at once, in all
// processes together: who holds one may run a job. And one counts the jobs that were handed
// back without a run, or when Work ended, because JetStream counts deliveries.
//
// Concurrent calls of Enqueue share a commit: whoever comes while one is under way is
// in the next. No timer is involved, so a single caller waits for one commit and
// nothing else.
package jetstream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"runtime"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/limiter"
)

// Sync says what Enqueue's acknowledgement means.
type Sync uint8

const (
	// GroupCommit: the job is on disk. The server must fsync before it acknowledges
	// (sync_interval: always; embedded does). Open refuses a Server that does not; of a
	// server by URL it cannot know.
	GroupCommit Sync = iota
	// Interval: the job is in the server's memory and reaches the disk within the
	// server's interval. It survives the end of the process, but a crash of the machine
	// may lose what was acknowledged in the last moment.
	Interval
)

// Server is a server in this process; *embedded.Server is one. If it also has the methods
// Room() error and Failed() error, these say why it cannot store jobs, before a commit. If it
// has OnFirstOpen(queue string, free func() error) error, Open has it call free where no
// process but this one can hold any of the queue.
type Server interface {
	InProcessConn() (net.Conn, error)
	SyncsAlways() bool // acknowledged means on disk
}

// Config says where the jobs are and how they are done. Zero values mean the default
// given with each field. MaxQueued, MaxBytes, MaxInFlight, AckWait, Dedupe and
// Replicas belong to the queue, not to the process: the process that opened it last
// decides, and one that leaves them zero leaves them as they are. Those that have it
// open already go on with what they found: change AckWait and MaxInFlight when all of
// them start again.
type Config struct {
	Server  Server        // the engine in this process, or
	URL     string        // of NATS servers, 2.12.1 or newer, separated by commas; default nats.DefaultURL
	Options []nats.Option // TLS, credentials and the like, for the connection

	Name      string // of the queue: letters, digits, - and _; default "jobs"
	MaxQueued int    // jobs that wait or run; default 1,000,000
	MaxBytes  int64  // of those jobs; default 1 GiB, halved until the server has room for it

	// MaxInFlight is how many handlers run at once, over all processes; default 8 for each
	// processor of the first one. A process that stalls for longer than AckWait loses its
	// share to others while its handlers still run, and until these return more than
	// MaxInFlight run. They are told to, by their contexts, as soon as it goes on.
	MaxInFlight int

	AckWait  time.Duration // a job without an end or a Progress for so long goes to another worker; default 30 s
	Replicas int           // of the streams, in a cluster; default 1
	Sync     Sync

	// Dedupe is how long keys are remembered; default 2 min. The server has the keys of jobs that
	// have ended in its memory alone: once it has started again, an embedded one with each
	// deployment, what is enqueued with such a key is a new job. In a cluster this goes for the
	// server that leads the stream. The keys of jobs that have not ended are kept with them, but
	// for those that were enqueued again after Purge. Purge of waiting jobs also forgets the
	// keys of jobs that were enqueued after the oldest of these and have ended.
	Dedupe time.Duration

	jobqueue.Policy
	Limiter *limiter.Limiter // admits the handlers of this process, if set; what it refuses waits for its advice, or a second if that is less
	Wait    time.Duration    // for an answer of the engine; default 5 s
	Logger  *slog.Logger     // connection lost and found, dead letters; default: nothing
}

const (
	defaultQueued   = 1_000_000
	defaultBytes    = 1 << 30
	leastBytes      = 1 << 20 // a server with less has no room for jobs
	inFlightEach    = 8
	defaultAckWait  = 30 * time.Second
	leastAckWait    = 100 * time.Millisecond
	defaultDedupe   = 2 * time.Minute
	leastDedupe     = 100 * time.Millisecond
	defaultWait     = 5 * time.Second
	mostInFlight    = 10_000
	mostReplicas    = 5
	roomForReason   = 8 << 10 // of a message, so that a dead letter fits where its job did
	longestKey      = 512
	longestEnvelope = 48 << 10 // of a job's headers; the server takes 64 KiB
)

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check returns what is wrong, one fault on a line.
func (c *Config) check() error {
	faults := []error{c.Policy.Check()}
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Server != nil && c.URL != "", "Server and URL are both set: use one of them")
	fault(c.Name != "" && !validName.MatchString(c.Name), "Name is %.70q: use at most 64 letters, digits, - and _", c.Name)
	fault(c.MaxQueued < 0, "MaxQueued is %d: it must not be negative", c.MaxQueued)
	fault(c.MaxBytes < 0, "MaxBytes is %d: it must not be negative", c.MaxBytes)
	fault(c.MaxInFlight < 0 || c.MaxInFlight > mostInFlight, "MaxInFlight is %d: use 1 to %d, or 0", c.MaxInFlight, mostInFlight)
	fault(c.AckWait != 0 && c.AckWait < leastAckWait, "AckWait is %s: use at least %s", c.AckWait, leastAckWait)
	fault(c.Dedupe != 0 && c.Dedupe < leastDedupe, "Dedupe is %s: use at least %s", c.Dedupe, leastDedupe)
	fault(c.Replicas < 0 || c.Replicas > mostReplicas, "Replicas is %d: use 1 to %d", c.Replicas, mostReplicas)
	fault(c.Sync > Interval, "Sync is %d: use GroupCommit or Interval", c.Sync)
	fault(c.Wait < 0, "Wait is %s: it must not be negative", c.Wait)
	fault(c.Server != nil && c.Sync == GroupCommit && !c.Server.SyncsAlways(),
		"the server does not fsync before it acknowledges: start it with Sync: embedded.Always, or set Sync: Interval")
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}

// fill sets the defaults that are the process's own.
func (c *Config) fill() {
	c.Name = cmp.Or(c.Name, "jobs")
	c.URL = cmp.Or(c.URL, nats.DefaultURL)
	c.Wait = cmp.Or(c.Wait, defaultWait)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func defaultInFlight() int { return inFlightEach * runtime.GOMAXPROCS(0) }
