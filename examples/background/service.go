package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/workerpool"
)

// reminder is what a client asks for and a job sends.
type reminder struct {
	Patient string `json:"patient" validate:"required,min=1"`
	Text    string `json:"text" validate:"required,min=1"`
}

// sendTimeout bounds one job: no caller waits for it that could give up.
const sendTimeout = 30 * time.Second

// service accepts reminders and sends them later.
type service struct {
	pool     *workerpool.Pool
	send     func(context.Context, reminder) error
	log      *slog.Logger
	stopping atomic.Bool

	mu   sync.Mutex
	last int
	open map[int]bool // accepted and not ended: has it started?
	sent int
}

func newService(workers, queue int, send func(context.Context, reminder) error, log *slog.Logger) (*service, error) {
	s := &service{send: send, log: log, open: map[int]bool{}}
	pool, err := workerpool.New(workerpool.Config{
		Name: "reminders", MaxWorkers: workers, QueueSize: queue,
		OnDone: func(r workerpool.Result) { // without it, a panic of a job would end the process
			if r.Started && r.Err != nil {
				log.Error("reminder was not sent", "error", r.Err)
			}
		},
	})
	s.pool = pool
	return s, err
}

// handler is what the service answers. Package route reads and checks the
// requests, and turns a refusal of the pool into 503 with Retry-After.
func (s *service) handler() (http.Handler, error) {
	mux := route.NewMux(route.Config{
		Limits: route.Limits{Body: 4 << 10},
		Report: func(_ context.Context, pattern string, err error) {
			s.log.Error("request failed", "route", pattern, "error", err)
		},
	})
	return mux, errors.Join(
		mux.Add(route.New("POST", "/reminders", s.accept).Name("remind").Status(http.StatusAccepted)),
		mux.Handle("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })),
		mux.Handle("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if s.stopping.Load() { // never by load: a busy server is ready
				http.Error(w, "stopping", http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ready")
		})),
	)
}

// accepted is the answer to a reminder that will be sent.
type accepted struct {
	ID int `json:"id"`
}

// accept hands a reminder to the pool and answers at once.
func (s *service) accept(ctx context.Context, what reminder) (accepted, error) {
	id := s.enter()
	// The job outlives the request: it keeps its values (trace, user), not its end.
	err := s.pool.TrySubmit(context.WithoutCancel(ctx), func(ctx context.Context) error {
		s.start(id)
		defer s.leave(id)
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		defer cancel()
		if err := s.send(ctx, what); err != nil {
			return fmt.Errorf("reminder %d: %w", id, err)
		}
		s.count()
		return nil
	})
	if err != nil {
		s.leave(id)
	}
	return accepted{id}, err
}

// The ledger: which accepted reminders have not ended.

func (s *service) enter() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.open[s.last] = false
	return s.last
}

func (s *service) start(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id] = true
}

func (s *service) leave(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

func (s *service) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
}

// leftovers is what a stop leaves behind. An abandoned reminder that was under
// way may have been sent.
type leftovers struct {
	sent      int
	abandoned []int
	started   map[int]bool
}

func (s *service) leftovers() leftovers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return leftovers{s.sent, slices.Sorted(maps.Keys(s.open)), maps.Clone(s.open)}
}

func (l leftovers) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stopped: %d sent, %d abandoned\n", l.sent, len(l.abandoned))
	for _, id := range l.abandoned {
		state := "was never started"
		if l.started[id] {
			state = "was under way and may have been sent"
		}
		fmt.Fprintf(&b, "  reminder %d %s\n", id, state)
	}
	return b.String()
}
