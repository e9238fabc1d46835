package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/workerpool"
)

// reminder is what a job sends.
type reminder struct {
	Patient string `json:"patient"`
	Text    string `json:"text"`
}

// sendTimeout bounds one job: nobody waits for it who could give up.
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

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reminders", s.accept)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.stopping.Load() { // never by load: a busy server is ready
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return mux
}

// accept hands a reminder to the pool and answers at once.
func (s *service) accept(w http.ResponseWriter, r *http.Request) {
	var what reminder
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	body.DisallowUnknownFields()
	if err := body.Decode(&what); err != nil || what.Patient == "" || what.Text == "" {
		answer(w, problem{Title: "not a reminder", Status: http.StatusBadRequest, Detail: `want {"patient":"…","text":"…"} of at most 4 KiB`})
		return
	}
	id := s.enter()
	// The job outlives the request: it keeps its values (trace, user), not its end.
	err := s.pool.TrySubmit(context.WithoutCancel(r.Context()), func(ctx context.Context) error {
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
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, "{\"id\":%d}\n", id)
}

// refuse says that nothing was accepted and when to come back.
func refuse(w http.ResponseWriter, err error) {
	detail, after := "", time.Duration(0)
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		detail, after = rej.Reason.String(), rej.RetryAfter
	}
	seconds := max(1, int(math.Ceil(after.Seconds()))) // whole seconds, never "at once"
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	answer(w, problem{
		Type:  "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		Title: "too many reminders at the moment", Status: http.StatusServiceUnavailable, Detail: detail,
	})
}

// problem is an error as RFC 9457 wants it.
type problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func answer(w http.ResponseWriter, p problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client left; there is nobody to tell
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
