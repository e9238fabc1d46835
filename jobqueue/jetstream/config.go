package jetstream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
	"github.com/spillway-go/spillway/jobqueue/internal/local"
	"github.com/spillway-go/spillway/limiter"
)

// Config sets where the jobs are stored and how they run. Zero values mean the default given with
// each field. MaxQueued, MaxBytes, MaxInFlight, AckWait, Dedupe and Replicas belong to the queue,
// not to the process. The process that opened the queue last sets them; a zero value leaves the
// queue's value unchanged. Processes that already have the queue open keep the values that they
// found: change AckWait and MaxInFlight when all processes restart.
type Config struct {
	Server  interface{ Engine() local.Engine } // an *embedded.Server; excludes URL
	URL     string                             // NATS servers, 2.12.1 or newer, separated by commas; excludes Server; default nats.DefaultURL
	Options []nats.Option                      // TLS, credentials and the like, for the connection, which is tried again for ever

	Name      string // the queue's name: letters, digits, - and _, without -dead, -slots or -returns at the end; default "jobs"
	MaxQueued int    // limit of waiting and running jobs; default 1,000,000
	MaxBytes  int64  // limit of the bytes of waiting and running jobs; default 1 GiB, halved until the server has room

	// MaxInFlight is how many handlers run at once, over all processes; the default is 8 for each
	// processor of the first process. A process that stalls for longer than AckWait loses its slots
	// to other processes while its handlers still run. More than MaxInFlight handlers run until
	// those handlers return. The stalled process ends their contexts as soon as it resumes.
	MaxInFlight int

	AckWait  time.Duration // time without an end or a Progress after which another worker gets the job; default 30 s
	Replicas int           // replicas of the streams, in a cluster; default 1

	// NoSync is for servers given by URL that do not fsync before they acknowledge (sync_interval is
	// not always), whose commits are then cheaper. Open cannot check that; a Server tells by itself.
	// Without the fsync an acknowledged job is in the server's memory and reaches the disk within the
	// server's sync interval. The job survives the end of the process. A crash of the machine may lose
	// jobs that were acknowledged shortly before.
	NoSync bool

	// Dedupe is how long keys are remembered; default 2 min, or the server's duplicate_window if that
	// is shorter. The server holds the keys of ended
	// jobs in memory only. After a server restart, a job enqueued with such a key is a new job; an
	// embedded server restarts with each deployment. In a cluster the restart of the stream's
	// leader has this effect. The keys of jobs that have not ended are stored with the jobs, except
	// for jobs that were enqueued again after Purge. Purge of waiting jobs also forgets the keys of
	// ended jobs that were enqueued after the oldest purged job.
	Dedupe time.Duration

	jobqueue.Policy
	Limiter *limiter.Limiter // if set, admits the handlers of this process; a refused job waits as advised, at most 1 s
	Wait    time.Duration    // timeout of an engine's answer; default 5 s
	Logger  *slog.Logger     // connection loss and recovery, dead letters; default: no log
}

const (
	defaultQueued   = 1_000_000
	defaultBytes    = 1 << 30
	leastBytes      = 1 << 20 // a server with less space has no room for jobs
	inFlightEach    = 8
	defaultAckWait  = 30 * time.Second
	leastAckWait    = 100 * time.Millisecond
	defaultDedupe   = 2 * time.Minute
	leastDedupe     = 100 * time.Millisecond
	defaultWait     = 5 * time.Second
	mostInFlight    = 10_000
	mostReplicas    = 5
	roomForReason   = 8 << 10    // reserved in a message, so that a dead letter fits where its job did
	longestEnvelope = 48 << 10   // limit of a job's headers
	longestHeaders  = 64<<10 - 1 // the server's limit of a message's headers
)

var (
	validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	ofPart    = regexp.MustCompile(`-(dead|slots|returns)$`) // see namesOf
)

// check returns all faults, one on a line.
func (c *Config) check() error {
	faults := []error{engine.Check(c.Policy)}
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Server != nil && c.URL != "", "Server and URL are both set: use one of them")
	fault(c.Name != "" && !validName.MatchString(c.Name), "Name is %.70q: use at most 64 letters, digits, - and _", c.Name)
	fault(ofPart.MatchString(c.Name), "Name is %.70q: a part of another queue may have this name, use one that does not end in -dead, -slots or -returns", c.Name)
	fault(c.MaxQueued < 0, "MaxQueued is %d: it must not be negative", c.MaxQueued)
	fault(c.MaxBytes < 0, "MaxBytes is %d: it must not be negative", c.MaxBytes)
	fault(c.MaxInFlight < 0 || c.MaxInFlight > mostInFlight, "MaxInFlight is %d: use 1 to %d, or 0", c.MaxInFlight, mostInFlight)
	fault(c.AckWait != 0 && c.AckWait < leastAckWait, "AckWait is %s: use at least %s", c.AckWait, leastAckWait)
	fault(c.Dedupe != 0 && c.Dedupe < leastDedupe, "Dedupe is %s: use at least %s", c.Dedupe, leastDedupe)
	fault(c.Replicas < 0 || c.Replicas > mostReplicas, "Replicas is %d: use 1 to %d", c.Replicas, mostReplicas)
	fault(c.Wait < 0, "Wait is %s: it must not be negative", c.Wait)
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}

// fill sets the defaults that belong to the process.
func (c *Config) fill() {
	c.Name = cmp.Or(c.Name, "jobs")
	c.URL = cmp.Or(c.URL, nats.DefaultURL)
	c.Wait = cmp.Or(c.Wait, defaultWait)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func defaultInFlight() int { return inFlightEach * runtime.GOMAXPROCS(0) }
