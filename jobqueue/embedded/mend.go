package embedded

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// keptFree is the space on the disk that new jobs leave free. The ends of jobs and dead letters
	// need some of it, and ended jobs make room again.
	keptFree  = 16 << 20
	amply     = 4 * keptFree           // with this much space, room looks once in lookEvery
	lookEvery = 10 * time.Millisecond  // in which a disk of 5 GB/s fills what is more than keptFree
	leastRest = 100 * time.Millisecond // least pause before the server starts again
	mostRest  = 30 * time.Second
	calm      = time.Minute // a failure this long after the last one starts with leastRest again
)

func (s *Server) room() error {
	if at := s.ample.Load(); at != nil && time.Since(*at) < lookEvery {
		return nil
	}
	free, known := s.free()
	if !known || free >= amply {
		s.ample.Store(new(time.Now()))
		return nil
	}
	if free < keptFree {
		return fmt.Errorf("the disk of %s has %d MiB left, and %d MiB are kept for the jobs that end: make room on it", s.cfg.Dir, free>>20, keptFree>>20)
	}
	return nil
}

func (s *Server) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		return nil
	}
	return fmt.Errorf("the store in %s failed and is started again: %w", s.cfg.Dir, s.failed)
}

// watch restarts the server whenever its store has failed. A failed store does not recover by
// itself, even if there is room again.
func (s *Server) watch() {
	defer close(s.watched)
	rest, last := leastRest, time.Time{}
	for {
		select {
		case <-s.closing.Done():
			return
		case <-s.trouble:
		}
		old := s.running()
		err := broken(old)
		if err == nil {
			continue
		}
		if time.Since(last) > calm {
			rest = leastRest
		}
		s.fail(err)
		old.Shutdown()
		old.WaitForShutdown()
		if rest = s.restart(rest); s.closing.Err() != nil {
			return
		}
		last = time.Now()
	}
}

// broken returns the fault of a server that a restart can mend, or nil. Other faults would be back
// after a restart.
func broken(s *server.Server) error {
	if !s.JetStreamEnabled() {
		return errors.New("the server has stopped JetStream")
	}
	for _, fault := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if strings.Contains(fault.Error, "write error") {
			return errors.New(fault.Error)
		}
	}
	return nil
}

func (s *Server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// restart starts a new server once there is room, in place of the stopped one. It returns the pause
// before the next restart.
func (s *Server) restart(rest time.Duration) time.Duration {
	for {
		timer := time.NewTimer(rest)
		select {
		case <-s.closing.Done():
			timer.Stop()
			return rest
		case <-timer.C:
		}
		if err := s.room(); err != nil {
			s.fail(err)
			continue
		}
		rest = min(2*rest, mostRest)
		cfg := s.cfg
		if u, err := url.Parse(s.url); err == nil && s.url != "" {
			cfg.Listen = u.Host // keep the port
		}
		options, err := cfg.options()
		if err == nil {
			err = s.start(options)
		}
		if err == nil {
			return rest
		}
		s.fail(err)
	}
}
