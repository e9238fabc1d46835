package agents

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// memory is a Bus within a process. Messages to one subscriber arrive in their order.
type memory struct {
	mu    sync.Mutex
	subs  map[string]map[*subscription]bool
	delay func(data []byte) time.Duration // on the way; nil: none
	done  chan struct{}
}

type subscription struct{ queue chan delivery }

type delivery struct {
	due   time.Time
	data  []byte
	reply func([]byte)
}

func newMemory(t *testing.T) *memory {
	m := &memory{subs: map[string]map[*subscription]bool{}, done: make(chan struct{})}
	t.Cleanup(func() { close(m.done) })
	return m
}

func (m *memory) Publish(subject string, data []byte) error {
	m.send(subject, data, func([]byte) {})
	return nil
}

func (m *memory) send(subject string, data []byte, reply func([]byte)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	due := time.Now()
	if m.delay != nil {
		due = due.Add(m.delay(data))
	}
	for s := range m.subs[subject] {
		s.queue <- delivery{due, data, reply}
	}
}

func (m *memory) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	answer := make(chan []byte, 1)
	m.send(subject, data, func(text []byte) {
		if m.delay == nil {
			answer <- text
			return
		}
		time.AfterFunc(m.delay(text), func() { answer <- text })
	})
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) Subscribe(subject string, f func([]byte, func([]byte))) (func(), error) {
	s := &subscription{make(chan delivery, 100_000)}
	m.mu.Lock()
	if m.subs[subject] == nil {
		m.subs[subject] = map[*subscription]bool{}
	}
	m.subs[subject][s] = true
	m.mu.Unlock()
	go func() {
		for {
			select {
			case d := <-s.queue:
				if wait := time.Until(d.due); wait > 0 {
					select {
					case <-time.After(wait):
					case <-m.done:
						return
					}
				}
				f(d.data, d.reply)
			case <-m.done:
				return
			}
		}
	}()
	return func() {
		m.mu.Lock()
		delete(m.subs[subject], s)
		m.mu.Unlock()
	}, nil
}

// cable connects one process to a bus, until it is cut.
type cable struct {
	Bus
	broken atomic.Bool
}

func (c *cable) Publish(subject string, data []byte) error {
	if c.broken.Load() {
		return nil
	}
	return c.Bus.Publish(subject, data)
}

func (c *cable) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if c.broken.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.Bus.Request(ctx, subject, data)
}

func (c *cable) Subscribe(subject string, f func([]byte, func([]byte))) (func(), error) {
	return c.Bus.Subscribe(subject, func(data []byte, reply func([]byte)) {
		if !c.broken.Load() {
			f(data, func(text []byte) {
				if !c.broken.Load() {
					reply(text)
				}
			})
		}
	})
}
