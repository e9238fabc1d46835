// Package embedded runs a NATS server with JetStream in this process, for durable jobs
// without anything to install. It opens no port unless it is told to.
//
//	server, err := embedded.Start(embedded.Config{Dir: "/var/lib/orders/jobs"})
//	queue, err := jetstream.Open(ctx, jetstream.Config{Server: server})
//
// It fsyncs before it acknowledges, so a job that was accepted survives the loss of
// power. Close the queues first, then the server.
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
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Sync says when what is written reaches the disk.
type Sync uint8

const (
	Always   Sync = iota // before it is acknowledged
	Interval             // within Config.SyncEvery: a crash of the machine may lose what was acknowledged
)

// Config says where the server keeps its data. Zero values mean the default given with
// each field; only Dir must be set.
type Config struct {
	Dir        string        // of the data; made if it is missing; of this server alone
	Sync       Sync          // default Always
	SyncEvery  time.Duration // with Interval; default 2 s
	MaxBytes   int64         // of the disk; default: what JetStream takes, three quarters of what is free
	MaxPayload int32         // of one message; default 1 MiB
	Listen     string        // host:port for other processes; port 0 takes a free one; default: none. Whoever reaches it may do anything: use the loopback interface, or a server of your own with TLS and accounts.
	Logger     *slog.Logger  // default: nothing
}

const (
	lockName          = "spillway.lock"
	startWait         = 30 * time.Second // for a large store to be read
	defaultSyncEvery  = 2 * time.Second
	defaultMaxPayload = 1 << 20
	mostPayload       = 64 << 20 // the server's own bound
)

// Server is a running server.
type Server struct {
	cfg  Config
	url  string
	lock *os.File
	free func() (bytes int64, known bool) // of the disk

	trouble chan struct{}   // the server has logged an error
	closing context.Context // ends with Close
	end     context.CancelFunc
	stopped func() <-chan struct{}
	watched chan struct{} // closed when watch has ended

	mu     sync.Mutex
	server *server.Server // another one after each failure of the store
	failed error          // of the store, until it works again

	opening sync.Mutex
	opened  map[string]bool // queues
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

// start starts a server. One that does not become ready is stopped.
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
	fault(c.Sync > Interval, "Sync is %d: use Always or Interval", c.Sync)
	fault(c.SyncEvery < 0, "SyncEvery is %s: it must not be negative", c.SyncEvery)
	fault(c.MaxBytes < 0, "MaxBytes is %d: it must not be negative", c.MaxBytes)
	fault(c.MaxPayload < 0 || c.MaxPayload > mostPayload, "MaxPayload is %d: use at most %d", c.MaxPayload, mostPayload)
	o := &server.Options{
		ServerName: "spillway-jobs", JetStream: true, StoreDir: c.Dir, NoSigs: true, DontListen: c.Listen == "",
		SyncAlways: c.Sync == Always, SyncInterval: cmp.Or(c.SyncEvery, defaultSyncEvery),
		JetStreamMaxStore: c.MaxBytes, MaxPayload: cmp.Or(c.MaxPayload, defaultMaxPayload),
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

// claim makes the folder, if it is missing, and takes it for this process alone. The
// operating system ends the claim when the process does.
func claim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the jobs cannot be made: %w", err)
	}
	name := filepath.Join(dir, lockName)
	file, err := lockFile(name) // empty, or what an earlier process wrote
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s is in use by another process or server (%s is locked): stop that, or use another folder", dir, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", dir, err)
	}
	// A full disk is found here, and not by the first job.
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

// InProcessConn is for jetstream.Config.Server.
func (s *Server) InProcessConn() (net.Conn, error) { return s.running().InProcessConn() }

// SyncsAlways reports whether what is acknowledged is on disk.
func (s *Server) SyncsAlways() bool { return s.cfg.Sync == Always }

// OnFirstOpen is for jetstream.Open: it calls free the first time that a queue of this name
// is opened. What an earlier process held of the queue is held by no process any more. With
// Config.Listen others may hold some of it, and free is not called.
func (s *Server) OnFirstOpen(queue string, free func() error) error {
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

// URL is for other processes; empty without Config.Listen.
func (s *Server) URL() string { return s.url }

func (s *Server) running() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// Close stops the server, writes what is in memory and gives the folder back. It blocks
// until that is done or ctx ends; then the server stops on its own. It may be called
// again.
func (s *Server) Close(ctx context.Context) error {
	s.end()
	select {
	case <-s.stopped():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop stops the server, and closes the channel that it returns when it has.
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
