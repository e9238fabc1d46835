package jetstream

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway"
)

const (
	mostInBatch  = 1000    // the server's maximum
	bytesInBatch = 4 << 20 // bounds how long a commit delays others
	// fewAlone is how many entries are committed one by one rather than in a batch. For a batch the
	// server creates files, which takes about as long as fewAlone single messages.
	fewAlone = 8
)

// entry is a job on its way to the engine.
type entry struct {
	msg      *nats.Msg
	id       string // the message ID
	deadline time.Time
	left     atomic.Bool   // the caller no longer waits
	decided  chan struct{} // closed when duplicate and err are set; nil: the caller commits the entry

	unanswered bool // a try to store the entry was not answered
	batched    bool // the message has the headers of a batch

	duplicate bool
	err       error
}

func newEntry(msg *nats.Msg, deadline time.Time) *entry {
	return &entry{msg: msg, id: msg.Header.Get(headerMsgID), deadline: deadline}
}

func (e *entry) decide(duplicate bool, err error) {
	e.duplicate, e.err = duplicate, err
	if e.decided != nil {
		close(e.decided)
	}
}

// outcome is the engine's answer to a batch.
type outcome uint8

const (
	stored    outcome = iota
	repeated          // a message ID in the batch is known
	full              // no room for any entry
	tight             // no room for the bytes of the batch
	uncertain         // no answer: stored or not
	refused           // the engine will never accept the batch
	tooMany           // the engine accepts only batches of fewer entries
)

// committer commits entries. A caller commits its own entry, as long as at most alone callers do so
// at once. Further entries wait, and are gathered into batches: one commit at a time, in a goroutine
// that exists only while there are entries to commit.
//
// Where an acknowledgement costs no fsync there is nothing to share: a server makes files for a batch,
// and removes them. There alone has no bound.
type committer struct {
	alone int // the most callers that commit at once

	send func(ctx context.Context, batch []*entry) (outcome, error) // stores all entries or none
	rest func(ctx context.Context) bool                             // pauses between tries of an uncertain batch; false: give up

	mu      sync.Mutex
	callers int // that commit their own entries
	waiting []*entry
	most    int  // entries in a batch; zero: mostInBatch
	busy    bool // run commits
	over    bool
	ended   sync.WaitGroup
}

var errClosed = &spillway.Rejection{Reason: spillway.ReasonClosed}

// store commits an entry, and returns the entry's error. If ctx ends before, the entry may be stored
// or not; no later batch has the entry.
func (c *committer) store(ctx context.Context, e *entry) error {
	if !c.enter() {
		c.put(e)
		return c.wait(ctx, e)
	}
	defer c.leave()
	c.commit(ctx, []*entry{e})
	return e.err
}

// enter reports whether a caller may commit its own entry. It must call leave afterwards.
func (c *committer) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.busy || len(c.waiting) > 0 || c.callers >= c.alone {
		return false
	}
	c.callers++
	c.ended.Add(1)
	return true
}

func (c *committer) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callers--
	c.begin()
	c.ended.Done()
}

// put hands an entry to the committer. The entry is decided later; no caller needs to wait for it.
func (c *committer) put(e *entry) {
	e.decided = make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		e.decide(false, errClosed)
		return
	}
	c.waiting = append(c.waiting, e)
	c.begin()
}

// begin lets run commit the waiting entries, unless a commit is under way. c.mu must be held.
func (c *committer) begin() {
	if !c.busy && c.callers == 0 && len(c.waiting) > 0 {
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
		c.commit(context.Background(), batch)
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
			if len(batch) == orElse(c.most, mostInBatch) || twice || len(batch) > 0 && bytes > bytesInBatch {
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

// commit decides every entry of the batch. The engine's answer is about the whole batch, and not all
// of its entries deserve it. commit therefore splits a batch that was not stored in halves, until
// each such entry is alone in its batch. It returns the size from which on the engine has no room.
func (c *committer) commit(ctx context.Context, batch []*entry) (noRoom int) {
	noRoom = math.MaxInt
	if 1 < len(batch) && len(batch) <= fewAlone {
		for i := range batch {
			noRoom = min(noRoom, c.commit(ctx, batch[i:i+1]))
		}
		return noRoom
	}
	for len(batch) > 0 {
		what, err := c.send(ctx, batch)
		switch {
		case what == stored:
			decideAll(batch, false, nil)
			return noRoom
		case what == uncertain:
			// If the batch was stored, the next try reports it as repeated.
			if batch = c.overdue(batch, err); len(batch) > 0 && !c.rest(ctx) {
				decideAll(batch, false, cmp.Or(ctx.Err(), err))
				return noRoom
			}
		case len(batch) > 1:
			half := len(batch) / 2
			if what == tooMany {
				c.atMost(half)
			}
			noRoom = min(noRoom, c.commit(ctx, batch[:half]))
			if batch = batch[half:]; what == full || what == tight { // no entry is known
				batch = fitting(batch, noRoom, err)
			}
		case what == repeated:
			batch[0].decide(true, nil)
			return noRoom
		default:
			batch[0].decide(false, err)
			switch what {
			case full:
				return 0
			case tight:
				return size(batch[0].msg)
			}
			return noRoom
		}
	}
	return noRoom
}

// atMost bounds the batches to come.
func (c *committer) atMost(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = n
}

// fitting fails the entries for which the engine has no room, and returns the others.
func fitting(batch []*entry, noRoom int, err error) (left []*entry) {
	for _, e := range batch {
		if size(e.msg) < noRoom {
			left = append(left, e)
		} else {
			e.decide(false, err)
		}
	}
	return left
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
