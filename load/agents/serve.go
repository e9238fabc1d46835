package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/load"
)

// AgentConfig is what an agent is.
type AgentConfig struct {
	Name string // for people, such as a host and a process
	Once bool   // Serve returns after one load that began

	// Plan reads a load; nil: load.ParseSpec does.
	Plan func(text []byte) (*load.Plan, error)
	Log  func(line string) // what happens, for people; nil: nobody reads it

	since func(time.Time) time.Duration // nil: time.Since; tests have other clocks
}

// errLost is why a load ends whose coordinator is not heard any more.
var errLost = errors.New("the coordinator is lost: the load ends")

// Serve waits for loads and sends them, one at a time, until ctx ends. With Once it
// returns after the first that began, and the error says if that was not sent as it should.
// When ctx ends during a load, the load is stopped and its partial result delivered.
func Serve(ctx context.Context, bus Bus, cfg AgentConfig) error {
	if cfg.Plan == nil {
		cfg.Plan = planned
	}
	if cfg.Log == nil {
		cfg.Log = func(string) {}
	}
	if cfg.since == nil {
		cfg.since = time.Since
	}
	a := &agent{bus: bus, cfg: cfg, id: newID(), began: time.Now(), sessions: make(chan *session, 1)}
	for subject, f := range map[string]func([]byte, func([]byte)){callSubject: a.called, agentSubject(a.id): a.asked} {
		unsubscribe, err := bus.Subscribe(subject, f)
		if err != nil {
			return err
		}
		defer unsubscribe()
	}
	for {
		select {
		case s := <-a.sessions:
			began, err := s.serve(ctx)
			a.mu.Lock()
			a.current = nil
			a.mu.Unlock()
			if err != nil {
				cfg.Log(err.Error())
			}
			if cfg.Once && began {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func planned(text []byte) (*load.Plan, error) {
	spec, err := load.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	return spec.Plan()
}

// agent waits for loads.
type agent struct {
	bus      Bus
	cfg      AgentConfig
	id       string
	began    time.Time // zero of its clock
	sessions chan *session

	mu      sync.Mutex
	current *session // nil: there is no load
}

func (a *agent) now() time.Duration { return a.cfg.since(a.began) }

// called answers a coordinator that wants to know who is there.
func (a *agent) called(data []byte, _ func([]byte)) {
	m, err := decode(data)
	if err != nil {
		a.cfg.Log(err.Error())
		return
	}
	if m.Call == nil {
		return
	}
	a.mu.Lock()
	busy := a.current != nil
	a.mu.Unlock()
	_ = a.bus.Publish(runSubject(m.Call.Run), message{Hello: &hello{a.id, a.cfg.Name, busy}}.encode())
}

// asked takes a request of a coordinator.
func (a *agent) asked(data []byte, reply func([]byte)) {
	m, err := decode(data)
	refuse := func(format string, args ...any) {
		reply(message{Answer: &answer{Refused: fmt.Sprintf(format, args...)}}.encode())
	}
	switch {
	case err != nil:
		refuse("%v", err)
	case m.Ping != nil:
		reply(message{Pong: &pong{int64(a.now())}}.encode())
	case m.Join != nil:
		a.join(m.Join, reply, refuse)
	case m.Start != nil:
		a.mu.Lock()
		s := a.current
		a.mu.Unlock()
		if s == nil {
			refuse("it has no load to start")
			return
		}
		at := time.Duration(m.Start.At)
		select {
		case s.starts <- at:
			reply(message{Answer: &answer{Late: max(0, a.now()-at)}}.encode())
		default:
			refuse("it was started already")
		}
	default:
		refuse("%v", errMessage)
	}
}

func (a *agent) join(j *join, reply func([]byte), refuse func(string, ...any)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil {
		a.current = newSession(a, j)
		a.sessions <- a.current // there is room: the one before was taken
	}
	s := a.current
	if s.run != j.Run || s.index != j.Index || s.of != j.Of {
		refuse("it is busy with another load")
		return
	}
	text, complete, err := s.text.add(j.Part)
	switch {
	case err != nil:
		refuse("%v", err)
	case !complete:
		reply(message{Answer: &answer{}}.encode())
	default:
		select {
		case s.loads <- request{text, reply}:
		default:
			refuse("it has its load already")
		}
	}
}
