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
	mostInBatch  = 1000    // the server's maximum
	bytesInBatch = 4 << 20 // bounds how long a commit delays others
	// fewAlone is the largest batch that is committed one by one. For a batch the server creates
	// files, which takes about as long as fewAlone single messages.
	fewAlone = 8
)

// entry is a job on its way to the engine.
type entry struct {
	msg      *nats.Msg
	id       string // the message ID
	deadline time.Time
	left     atomic.Bool   // the caller no longer waits
	decided  chan struct{} // closed when duplicate and err are set

	unanswered bool // a try to store the entry was not answered; used by the committer only

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

// outcome is the engine's answer to a batch.
type outcome uint8

const (
	stored    outcome = iota
	repeated          // a message ID in the batch is known
	full              // no room for the whole batch
	uncertain         // no answer: stored or not
	refused           // the engine will never accept the batch
)

// committer gathers entries into batches. It runs one commit at a time. Its goroutine exists only
// while there are entries to commit.
type committer struct {
	send func(batch []*entry) (outcome, error) // stores all entries or none
	rest func() bool                           // pauses between tries of an uncertain batch; false: give up

	mu      sync.Mutex
	waiting []*entry
	busy    bool
	over    bool
	ended   sync.WaitGroup
}

var errClosed = &spillway.Rejection{Reason: spillway.Closed}

// put hands an entry to the committer. The entry is decided later; no caller needs to wait for it.
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

// end refuses new entries, and returns when all earlier entries are decided.
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

// next takes the next batch: the first entries that fit, without entries whose callers have left. A
// batch ends before an entry whose message ID it already has. If the batch is empty, the goroutine
// must end.
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

// commit decides every entry of the batch, and reports whether the engine was full at the end. The
// engine reports a known ID or a lack of room only for the whole batch. commit therefore splits the
// batch in halves until each such entry is alone in its batch.
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
			// If the batch was stored, the next try reports it as repeated.
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

// overdue fails the entries that are past their deadline and returns the others.
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

// wait waits for the decision. If ctx ends before a commit has begun with the entry, the next batch
// omits the entry.
func (c *committer) wait(ctx context.Context, e *entry) error {
	select {
	case <-e.decided:
		return e.err
	case <-ctx.Done():
		e.left.Store(true)
		return ctx.Err()
	}
}
