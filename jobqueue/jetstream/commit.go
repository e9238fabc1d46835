package jetstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway"
)

const (
	mostInBatch  = 1000    // the server takes no more
	bytesInBatch = 4 << 20 // a bound on what a commit holds up
	// fewAlone are committed one by one: for a batch the server makes files of its own, which
	// takes it about as long as so many single messages.
	fewAlone = 8
)

// entry is a job on its way to the engine.
type entry struct {
	msg      *nats.Msg
	id       string // its message ID
	deadline time.Time
	left     atomic.Bool   // its caller waits no longer
	decided  chan struct{} // closed when duplicate and err are set

	unanswered bool // a try to store it was not answered; of the committer

	duplicate bool
	err       error
}

func newEntry(msg *nats.Msg, deadline time.Time) *entry {
	return &entry{msg: msg, id: msg.Header.Get(headerMsgID), deadline: deadline, decided: make(chan struct{})}
}

func (e *entry) decide(duplicate bool, err error) {
	e.duplicate, e.err = duplicate, err
	close(e.decided)
}

// outcome is what the engine said of a batch.
type outcome uint8

const (
	stored    outcome = iota
	repeated          // a message ID in it is known
	full              // there is no room for all
	uncertain         // nothing heard: stored or not
	refused           // it will never be taken
)

// committer gathers entries into batches. There is one commit at a time; its goroutine
// exists while there is something to commit.
type committer struct {
	send func(batch []*entry) (outcome, error) // all or nothing
	rest func() bool                           // between tries of what was uncertain; false: give up

	mu      sync.Mutex
	waiting []*entry
	busy    bool
	over    bool
	ended   sync.WaitGroup
}

var errClosed = &spillway.Rejection{Reason: spillway.Closed}

// put hands an entry over. The entry is decided later; nobody needs to wait for it.
func (c *committer) put(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		e.decide(false, errClosed)
		return
	}
	c.waiting = append(c.waiting, e)
	if !c.busy {
		c.busy = true
		c.ended.Go(c.run)
	}
}

// end refuses what comes from now on, and returns when all else is decided.
func (c *committer) end() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.ended.Wait()
}

func (c *committer) run() {
	for {
		batch := c.next()
		if len(batch) == 0 {
			return
		}
		c.commit(batch)
	}
}

// next takes the batch that is committed next: the first entries that fit, up to one whose
// message ID is in it already, without those whose callers have left. Empty: the goroutine
// has to end.
func (c *committer) next() (batch []*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make(map[string]struct{}, min(len(c.waiting), mostInBatch))
	taken, bytes := 0, 0
	for _, e := range c.waiting {
		if !e.left.Load() {
			bytes += size(e.msg)
			_, twice := ids[e.id]
			if len(batch) == mostInBatch || twice || len(batch) > 0 && bytes > bytesInBatch {
				break
			}
			ids[e.id] = struct{}{}
			batch = append(batch, e)
		}
		taken++
	}
	rest := copy(c.waiting, c.waiting[taken:])
	clear(c.waiting[rest:])
	c.waiting = c.waiting[:rest]
	c.busy = len(batch) > 0
	return batch
}

// commit decides every entry of the batch, and reports whether the engine was full at
// its end. The engine says of a whole batch that something in it is known, or that it
// does not fit: halves are tried until the culprits are alone.
func (c *committer) commit(batch []*entry) (wasFull bool) {
	if 1 < len(batch) && len(batch) <= fewAlone {
		for i := range batch {
			wasFull = c.commit(batch[i : i+1])
		}
		return wasFull
	}
	for len(batch) > 0 {
		what, err := c.send(batch)
		switch {
		case what == stored:
			decideAll(batch, false, nil)
			return false
		case what == uncertain:
			// What was stored is found to be repeated by the next try.
			if batch = c.overdue(batch, err); len(batch) > 0 && !c.rest() {
				decideAll(batch, false, err)
				return false
			}
		case what == repeated && len(batch) == 1:
			batch[0].decide(true, nil)
			return false
		case what == repeated:
			c.commit(batch[:len(batch)/2])
			batch = batch[len(batch)/2:]
		case what == full && len(batch) > 1:
			if c.commit(batch[:len(batch)/2]) {
				decideAll(batch[len(batch)/2:], false, err)
				return true
			}
			batch = batch[len(batch)/2:]
		default:
			decideAll(batch, false, err)
			return what == full
		}
	}
	return false
}

// overdue fails the entries that have waited long enough and returns the others.
func (c *committer) overdue(batch []*entry, err error) []*entry {
	var left []*entry
	for _, e := range batch {
		e.unanswered = true
		if time.Now().Before(e.deadline) {
			left = append(left, e)
		} else {
			e.decide(false, err)
		}
	}
	return left
}

func decideAll(batch []*entry, duplicate bool, err error) {
	for _, e := range batch {
		e.decide(duplicate, err)
	}
}

// wait waits for the decision. If ctx ends first, an entry that no commit has begun
// with is left out of the next.
func (c *committer) wait(ctx context.Context, e *entry) error {
	select {
	case <-e.decided:
		return e.err
	case <-ctx.Done():
		e.left.Store(true)
		return ctx.Err()
	}
}
