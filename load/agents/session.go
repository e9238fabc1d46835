package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/load/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// session is an agent's part in one load.
type session struct {
	*agent
	run       string
	index, of int
	text      collector // of the load; under the agent's lock
	loads     chan request
	starts    chan time.Duration // by the agent's clock
	stops     chan struct{}      // closed: the coordinator says stop
	heard     atomic.Int64       // when the coordinator was, by the agent's clock
	echo      atomic.Pointer[echo]
}

// request is a load, and who waits for an answer.
type request struct {
	text  []byte
	reply func([]byte)
}

func newSession(a *agent, j *join) *session {
	s := &session{
		agent: a, run: j.Run, index: j.Index, of: j.Of,
		loads: make(chan request, 1), starts: make(chan time.Duration, 1), stops: make(chan struct{}),
	}
	s.heard.Store(int64(a.now()))
	return s
}

var errStopped = errors.New("the coordinator ended the load before it began")

// serve sees a load to its end, whatever that is, and says whether it began.
func (s *session) serve(ctx context.Context) (began bool, err error) {
	// Heartbeats go on while the result is delivered, also when ctx has ended.
	alive, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	context.AfterFunc(alive, func() { cancel(context.Cause(alive)) })
	unsubscribe, err := s.bus.Subscribe(allSubject(s.run), s.told())
	if err != nil {
		return false, err
	}
	defer unsubscribe()
	go s.watch(alive, lose)

	plan, err := s.prepare(ctx)
	if err != nil {
		return false, err
	}
	defer plan.Close()
	select {
	case at := <-s.starts:
		return true, s.send(ctx, plan, s.began.Add(at))
	case <-s.stops:
		return false, errStopped
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// told takes what the coordinator says to all agents.
func (s *session) told() func([]byte, func([]byte)) {
	stopped := false
	return func(data []byte, _ func([]byte)) {
		m, err := decode(data)
		if err != nil {
			s.cfg.Log(err.Error())
			return
		}
		now := int64(s.now())
		s.heard.Store(now)
		if m.Beat != nil {
			s.echo.Store(&echo{m.Beat.Clock, now})
		}
		if m.Stop != nil && !stopped {
			stopped = true
			close(s.stops)
		}
	}
}

// watch sends heartbeats, and ends the session when those of the coordinator are missing.
func (s *session) watch(ctx context.Context, lose func(error)) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		s.publish(message{Beat: &beat{s.index, int64(s.now()), s.echo.Load()}})
		if s.now()-time.Duration(s.heard.Load()) >= maxSilence {
			lose(errLost)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) publish(m message) { _ = s.bus.Publish(runSubject(s.run), m.encode()) }

// prepare plans the load and looks whether its target is there.
func (s *session) prepare(ctx context.Context) (*load.Plan, error) {
	select {
	case r := <-s.loads:
		plan, err := s.cfg.Plan(r.text)
		if err == nil && len(plan.Targets) > 0 {
			if err = plan.Reach(ctx); err != nil {
				plan.Close()
			}
		}
		a := &answer{}
		if err != nil {
			a.Refused = err.Error()
		}
		r.reply(message{Answer: a}.encode())
		return plan, err
	case <-s.stops:
		return nil, errStopped
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// send sends this agent's share and delivers what it measured.
func (s *session) send(ctx context.Context, plan *load.Plan, begin time.Time) error {
	s.cfg.Log(fmt.Sprintf("agent %d of %d begins", s.index+1, s.of))
	sending, stop := context.WithCancel(ctx)
	defer stop()
	asked := atomic.Bool{}
	go func() {
		select {
		case <-s.stops:
			asked.Store(true)
			stop()
		case <-sending.Done():
		}
	}()
	cfg := plan.Run
	cfg.Share, cfg.Begin = loadgen.Share{Index: s.index, Of: s.of}, begin
	cfg.Progress = func(shot loadgen.Snapshot) { s.publish(message{Live: &live{s.index, shot}}) }
	before := usage.CPU()
	result, err := loadgen.Run(sending, cfg)
	if err != nil {
		return err // Plan checks the same: the coordinator loses this agent
	}
	f := figures{Result: result, CPU: usage.CPU() - before}
	_, f.PeakRSS = usage.Resident(os.Getpid())
	f.Sent, f.Received = plan.Traffic()
	if err := plan.FirstError(); err != nil {
		f.FirstError = err.Error()
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLost):
		return cause
	case cause != nil && !asked.Load():
		f.Ended = "it was told to end"
	}
	if err := s.deliver(f); err != nil {
		return err
	}
	s.cfg.Log(fmt.Sprintf("agent %d of %d is done: %d requests", s.index+1, s.of, result.Offered))
	return nil
}

// deliver sends the figures, a part at a time. A part whose answer is missing is sent again.
func (s *session) deliver(f figures) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	for _, p := range split(text) {
		var said []byte
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), answerTime)
			said, err = s.bus.Request(ctx, runSubject(s.run), message{Done: &done{s.index, p}}.encode())
			cancel()
			if err == nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("the result was not delivered: %w", err)
		}
		m, err := decode(said)
		if err != nil {
			return fmt.Errorf("the result was not delivered: %w", err)
		}
		if m.Answer == nil || m.Answer.Refused != "" {
			return fmt.Errorf("the result was refused: %+v", m.Answer)
		}
	}
	return nil
}
