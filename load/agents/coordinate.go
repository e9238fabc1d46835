package agents

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

const (
	beatEvery  = 250 * time.Millisecond
	lookEvery  = 100 * time.Millisecond
	maxSilence = 1500 * time.Millisecond // after it an agent is lost: with the two above within 2 s

	callEvery  = 250 * time.Millisecond
	answerTime = 2 * time.Second // in which all agents have answered a call
	joinTime   = 30 * time.Second
	roundTrips = 16 // of which the shortest sets a clock
	lead       = 500 * time.Millisecond

	// stopTime is for an agent to deliver after it was told to stop: requests in flight
	// have a second, then the result is sent.
	stopTime = 10 * time.Second
)

// Config is a load for Coordinate.
type Config struct {
	Load     []byte        // what the agents' Plan reads
	Interval time.Duration // of Progress, and of the load's time line

	// Agents is how many there must be; 0: those that answer within two seconds. Wait is
	// how long to wait for them.
	Agents int
	Wait   time.Duration
	Gone   <-chan error // why one of them will not come; nobody asks once they are there

	Progress func(loadgen.Snapshot) // nil: nobody looks. Called by Coordinate's goroutine
	Log      func(line string)      // what happens, for people
}

// Coordinate sends a load from the agents on the bus and returns when all of them have
// delivered or are lost. When ctx ends before the start, its error is returned; later
// the agents are stopped, and the report has what they measured until then.
// An error that is a *Refusal, or matches ErrNobody, is one of the input.
func Coordinate(ctx context.Context, bus Bus, cfg Config) (*Report, error) {
	c := &coordinator{
		bus: bus, cfg: cfg, run: newID(), began: time.Now(),
		inbox: make(chan incoming, 1024), over: make(chan struct{}),
	}
	if c.cfg.Log == nil {
		c.cfg.Log = func(string) {}
	}
	defer close(c.over)
	unsubscribe, err := bus.Subscribe(runSubject(c.run), c.receive)
	if err != nil {
		return nil, err
	}
	defer unsubscribe()
	if err := c.gather(ctx); err != nil {
		return nil, err
	}
	defer c.tell(message{Stop: &empty{}}) // whatever happened: nobody goes on alone
	go c.beat()
	if err := c.share(ctx); err != nil {
		return nil, err
	}
	if err := c.align(ctx); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c.watch(ctx)
}

func newID() string { return rand.Text() }

// coordinator is one run.
type coordinator struct {
	bus   Bus
	cfg   Config
	run   string
	began time.Time // zero of its clock
	inbox chan incoming
	over  chan struct{}

	agents  []hello // by index
	clocks  []clock // at the start
	watched []watchedClock
	startAt time.Duration // by its clock

	report *Report
	roster *roster
	line   *timeline
	texts  []collector // of results
	asked  bool        // the agents were told to stop
}

type incoming struct {
	message
	err   error
	reply func([]byte)
	at    time.Duration // when it came
}

func (c *coordinator) now() time.Duration { return time.Since(c.began) }

// receive takes a message from the bus.
func (c *coordinator) receive(data []byte, reply func([]byte)) {
	at := c.now()
	m, err := decode(data)
	select {
	case c.inbox <- incoming{m, err, reply, at}:
	case <-c.over:
	}
}

// tell sends a message to all agents of the run.
func (c *coordinator) tell(m message) { _ = c.bus.Publish(allSubject(c.run), m.encode()) }

// beat tells the agents that they are not alone.
func (c *coordinator) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		c.tell(message{Beat: &beat{Clock: int64(c.now())}})
		select {
		case <-tick.C:
		case <-c.over:
			return
		}
	}
}

// call asks who is there.
func (c *coordinator) call() { _ = c.bus.Publish(callSubject, message{Call: &call{c.run}}.encode()) }

// gather calls until enough agents have answered.
func (c *coordinator) gather(ctx context.Context) error {
	var enough <-chan time.Time
	if c.cfg.Agents == 0 {
		enough = time.After(answerTime)
	}
	tooLate := time.After(max(c.cfg.Wait, answerTime))
	tick := time.NewTicker(callEvery)
	defer tick.Stop()
	free, busy := map[string]hello{}, map[string]bool{}
	var strange error
	ended := false
	c.call()
	for !ended && (c.cfg.Agents == 0 || len(free) < c.cfg.Agents) {
		select {
		case m := <-c.inbox:
			switch h := m.Hello; {
			case m.err != nil:
				strange = m.err
			case h != nil && h.Busy:
				busy[h.ID] = true
			case h != nil:
				free[h.ID] = *h
			}
		case <-tick.C:
			c.call()
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-c.cfg.Gone:
			return err
		case <-enough:
			ended = true
		case <-tooLate:
			ended = true
		}
	}
	if len(free) == 0 || len(free) < c.cfg.Agents {
		return tooFew(c.cfg.Agents, len(free), len(busy), strange)
	}
	c.agents = slices.SortedFunc(maps.Values(free), func(a, b hello) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	if c.cfg.Agents > 0 {
		c.agents = c.agents[:c.cfg.Agents]
	}
	names := ""
	for i, a := range c.agents {
		names += fmt.Sprintf(", %d %s", i+1, a.Name)
	}
	c.cfg.Log("agents: " + strings.TrimPrefix(names, ", "))
	c.clocks = make([]clock, len(c.agents))
	c.report = &Report{Agents: make([]Agent, len(c.agents))}
	for i, a := range c.agents {
		c.report.Agents[i].Name = a.Name
	}
	return nil
}

func tooFew(want, free, busy int, strange error) error {
	said := "no agent answers"
	if free > 0 {
		said = fmt.Sprintf("%d of %d agents are there", free, want)
	}
	if busy > 0 {
		said += fmt.Sprintf(", %d are busy with another load", busy)
	}
	if strange != nil {
		said += fmt.Sprintf(" (one sent %v)", strange)
	}
	return fmt.Errorf("%s: %w", said, ErrNobody)
}
