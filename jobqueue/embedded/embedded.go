// Package embedded runs a NATS server with JetStream in this process, for durable jobs without
// anything to install. It opens no port unless Config.Listen is set.
//
//	server, err := embedded.Start(embedded.Config{Dir: "/var/lib/orders/jobs"})
//	queue, err := jetstream.Open(ctx, jetstream.Config{Server: server})
//
// By default the server fsyncs before it acknowledges, so an acknowledged job survives a power
// failure. Close the queues first, then the server.
//
// # Full disks
//
// The server keeps 16 MiB of the disk free, so that jobs can still end. With less free space,
// Enqueue refuses jobs with jobqueue.ErrDiskFull. Where the free space is unknown, as on Windows
// and some BSDs, the server cannot do this.
//
// After a disk error, the server's store accepts nothing. The server then restarts by itself until
// its store works again, and the queues continue. Meanwhile the errors of Enqueue and the log tell the
// reason.
//
// # Cost
//
// The server starts in milliseconds if it holds few jobs.
//
// # Pitfalls
//
//   - A folder belongs to one process. Start refuses it to a second process, also while the first
//     one still shuts down.
//   - Jobs that a killed process was running run again after the rest of their AckWait. Jobs that
//     were waiting run at once.
//   - Replicas with a folder each have a queue each: while a replica is down, its jobs wait for it.
//     For one queue, give all replicas the same server, such as one with Listen.
//   - Without Listen nobody can look into the queue while the process runs: the command "spillway
//     queue --dir" needs a folder that no process uses. With Listen on the loopback interface,
//     "spillway queue --url" lists and retries dead letters of a process that runs.
//   - With Listen, other processes of the machine may work the queue: they open it with URL in
//     place of Server. While the server's process is down they go on, and wait for the server; a
//     process that starts then gets ErrUnavailable from jetstream.Open, and has to try again.
//
// # When not to use it
//
// For several machines, run NATS servers and give package jetstream their URLs.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/spillway-go/spillway/jobqueue/internal/local"
)

// Config sets where and how the server keeps its data. Zero values mean the default given with each
// field; only Dir must be set.
type Config struct {
	Dir        string       // folder of the data, for this server alone; created if it is missing
	NoSync     bool         // fsync every 2 seconds, not before each acknowledgement: a crash of the machine may lose acknowledged jobs
	MaxBytes   int64        // bound on the disk space; default: three quarters of the free space
	MaxPayload int32        // bound on one message; default 1 MiB
	Listen     string       // host:port for other processes; port 0 takes a free port; default: none. There is no access control: use the loopback interface, or run a NATS server with TLS and accounts.
	Logger     *slog.Logger // default: no log
}

const (
	lockName          = "spillway.lock"
	startWait         = 30 * time.Second // enough to read a large store
	syncEvery         = 2 * time.Second
	defaultMaxPayload = 1 << 20
	mostPayload       = 64 << 20 // the server's own bound
	// mostPending is how much a client may have to take. Beyond that the server ends its connection, and
	// the jobs on their way come again. By default 64 MB, which a request for jobs may exceed.
	mostPending = 1 << 30
	// mostWriting is how long a client may take for what a write of the server has. By default ten seconds.
	mostWriting = time.Minute
)

// Server is a running server.
type Server struct {
	cfg  Config
	url  string
	lock *os.File
	free func() (bytes int64, known bool) // free space of the disk

	ample atomic.Pointer[time.Time] // when the disk had room amply

	trouble chan struct{}   // the server has logged an error
	closing context.Context // ends with Close
	end     context.CancelFunc
	stopped func() <-chan struct{}
	watched chan struct{} // closed when watch has ended

	mu     sync.Mutex
	server *server.Server // replaced after each failure of the store
	failed error          // error of the store, until the store works again

	opening sync.Mutex
	opened  map[string]bool // names of the queues that were opened
}

// Start starts a server and returns when it is ready. It refuses a folder that another
// process uses or that cannot be written, and the error says so.
func Start(cfg Config) (*Server, error) {
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	lock, err := claim(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s := &Server{
		cfg: cfg, lock: lock, trouble: make(chan struct{}, 1), watched: make(chan struct{}), opened: map[string]bool{},
		free: func() (int64, bool) { return freeBytes(cfg.Dir) },
	}
	if err := s.start(options); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("embedded: starting the server in %s: %w", cfg.Dir, err)
	}
	if cfg.Listen != "" {
		s.url = s.server.ClientURL()
	}
	s.closing, s.end = context.WithCancel(context.Background())
	s.stopped = sync.OnceValue(s.stop)
	go s.watch()
	return s, nil
}

// start starts a server. It stops a server that does not become ready.
func (s *Server) start(options *server.Options) (err error) {
	began, err := server.NewServer(options)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			began.Shutdown()
			began.WaitForShutdown()
		}
	}()
	fatal := make(chan string, 1)
	began.SetLoggerV2(&logger{log: cmp.Or(s.cfg.Logger, slog.New(slog.DiscardHandler)), fatal: fatal, trouble: s.trouble}, false, false, false)
	go began.Start() // ends when the server has started, or stopped
	ready := make(chan bool, 1)
	go func() { ready <- began.ReadyForConnections(startWait) }() // ends after startWait
	select {
	case reason := <-fatal:
		return errors.New(reason)
	case ok := <-ready:
		if ok && began.JetStreamEnabled() {
			s.mu.Lock()
			s.server, s.failed = began, nil
			s.mu.Unlock()
			return nil
		}
	}
	select {
	case reason := <-fatal:
		return errors.New(reason)
	default:
		return fmt.Errorf("it is not ready after %s", startWait)
	}
}

func (c Config) options() (*server.Options, error) {
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Dir == "", "Dir is empty: say where the jobs are kept")
	fault(c.MaxBytes < 0, "MaxBytes is %d: it must not be negative", c.MaxBytes)
	fault(c.MaxPayload < 0 || c.MaxPayload > mostPayload, "MaxPayload is %d: use at most %d", c.MaxPayload, mostPayload)
	o := &server.Options{
		ServerName: "spillway-jobs", JetStream: true, StoreDir: c.Dir, NoSigs: true, DontListen: c.Listen == "",
		SyncAlways: !c.NoSync, SyncInterval: syncEvery,
		JetStreamMaxStore: c.MaxBytes, MaxPayload: cmp.Or(c.MaxPayload, defaultMaxPayload),
		MaxPending: mostPending, WriteDeadline: mostWriting,
	}
	if c.Listen != "" {
		host, text, err := net.SplitHostPort(c.Listen)
		port, bad := strconv.Atoi(text)
		fault(err != nil || bad != nil || host == "", "Listen is %q: use host:port, such as 127.0.0.1:4222", c.Listen)
		if o.Host, o.Port = host, port; port == 0 {
			o.Port = server.RANDOM_PORT
		}
	}
	return o, errors.Join(faults...)
}

// claim creates the folder if it is missing, and locks it for this process. The operating system
// releases the lock when the process ends.
func claim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the jobs cannot be made: %w", err)
	}
	name := filepath.Join(dir, lockName)
	file, err := lockFile(name) // empty, or written by an earlier process
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s is in use by another process or server (%s is locked): stop that, use another folder, or reach that server by its URL if it has Config.Listen", dir, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", dir, err)
	}
	// Detect a full disk here, not at the first job.
	_ = file.Truncate(0)
	if _, err = file.WriteString(strconv.Itoa(os.Getpid()) + "\n"); err == nil {
		err = file.Sync()
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s cannot be written: %w", dir, err)
	}
	return file, nil
}

// Engine is for jetstream.Open.
func (s *Server) Engine() local.Engine { return engine{s} }

// engine is described at local.Engine.
type engine struct{ s *Server }

func (e engine) InProcessConn() (net.Conn, error) { return e.s.running().InProcessConn() }
func (e engine) SyncsAlways() bool                { return !e.s.cfg.NoSync }
func (e engine) Room() error                      { return e.s.room() }
func (e engine) Failed() error                    { return e.s.failure() }

// OnFirstOpen does not call free with Config.Listen.
func (e engine) OnFirstOpen(queue string, free func() error) error {
	s := e.s
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.cfg.Listen != "" || s.opened[queue] {
		return nil
	}
	if err := free(); err != nil {
		return err
	}
	s.opened[queue] = true
	return nil
}

// URL returns the server's address for other processes; empty without Config.Listen.
func (s *Server) URL() string { return s.url }

func (s *Server) running() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// Close stops the server, writes its data to disk and unlocks the folder. It blocks until all that
// is done, or until ctx ends; the server then goes on stopping by itself. It may be called again.
func (s *Server) Close(ctx context.Context) error {
	s.end()
	select {
	case <-s.stopped():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop begins to stop the server. The returned channel is closed when the server has stopped.
func (s *Server) stop() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		<-s.watched
		last := s.running()
		last.Shutdown()
		last.WaitForShutdown()
		_ = s.lock.Close()
		close(done)
	}()
	return done
}
