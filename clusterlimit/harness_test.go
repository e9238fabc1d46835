package clusterlimit

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// engine starts a server in this process and returns its URL.
func engine(t testing.TB) string {
	t.Helper()
	return start(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}).ClientURL()
}

func start(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	check(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// logins lets a server refuse all logins. (New options for a running server would refuse them too, but a
// server that reads new users has a data race of its own.)
type logins struct{ refused atomic.Bool }

func (l *logins) Check(server.ClientAuthentication) bool { return !l.refused.Load() }

// join is Join with a short lease, closed at the end of the test.
func join(t testing.TB, cfg Config) *Member {
	t.Helper()
	if cfg.Lease == 0 {
		cfg.Lease = time.Second
	}
	m, err := joined(t.Context(), cfg)
	check(t, err)
	t.Cleanup(func() { _ = m.Close(t.Context()) })
	return m
}

// joined calls Join repeatedly while the engine is slow: a busy disk may take longer than Join
// waits.
func joined(ctx context.Context, cfg Config) (m *Member, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if m, err = Join(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
			break
		}
	}
	return m, err
}

// bound is a limiter with a law that would admit 1,000, bound to a member.
func bound(t testing.TB, m *Member) *limiter.Limiter {
	t.Helper()
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(1000), QueueSize: -1})
	if err == nil {
		err = m.Bind(lim)
	}
	check(t, err)
	return lim
}

// die ends a member like kill -9.
func (m *Member) die() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	<-m.done
	m.disconnect()
}

// proxy passes connections on to an address until it is cut.
type proxy struct {
	net.Listener
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &proxy{Listener: l}
	t.Cleanup(func() {
		l.Close()
		p.set(true)
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil || !p.keep(in, out) {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
	return p
}

func (p *proxy) keep(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		out.Close()
		return false
	}
	p.conns = append(p.conns, in, out)
	return true
}

// set cuts all connections and refuses others, or lets them pass again.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
