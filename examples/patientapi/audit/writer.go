package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is returned by a Writer that was closed.
var ErrClosed = errors.New("audit: the writer is closed")

// WriterConfig says where a Writer writes, and how much at one time. Storage is needed.
type WriterConfig struct {
	Storage Storage
	Key     Key

	// Timeout bounds each commit. Zero means two seconds.
	Timeout time.Duration

	// Patience bounds each call of Record, whatever its context says. Zero means five
	// seconds.
	Patience time.Duration

	// Linger bounds how long a commit waits for more records while they keep coming. Zero
	// means five milliseconds. A lone caller never waits for others.
	Linger time.Duration

	// MostAtOnce is how many records one commit takes. Zero means 4096.
	MostAtOnce int

	// Retry is how long after a commit that failed the next is tried, though nobody
	// records: then it is for the Gap alone. Zero means one second.
	Retry time.Duration
}

// Writer is a Log that writes what many callers record with one commit: while one is
// under way, the next batch collects. What was shed comes after all else: a caller who
// floods the service would otherwise keep what others read off the record.
type Writer struct {
	storage  Storage
	chain    *chain
	timeout  time.Duration
	patience time.Duration
	linger   time.Duration
	retry    time.Duration

	entries sync.Pool
	queue   chan *entry
	shed    chan *entry // refusals for overload, which are many, behind all others
	closing chan struct{}
	closed  sync.Once
	ended   chan struct{} // run has returned

	waiting, lost                       atomic.Int64
	recorded, failed, commits, failures atomic.Uint64
	trouble                             atomic.Pointer[error] // of the last commit; nil if it went well

	// Of run.
	batch       []*entry
	events      []Event
	head        Head  // after the last commit of this process
	block, last Block // what it writes, and what that commit has written
}

// ErrPatience is returned by Record when a record was not committed in time.
var ErrPatience = errors.New("audit: not committed in time")

// entry is one call of Record.
type entry struct {
	event Event
	done  chan error // has room for the answer
	timer *time.Timer
}

// NewWriter returns a Writer, with a goroutine that ends with Close. It fails if the
// storage cannot be read, and with ErrHead if its chain was made with another key. It
// records each process that has not ended well, where the storage is a Roll.
func NewWriter(ctx context.Context, cfg WriterConfig) (*Writer, error) {
	most := cmp.Or(cfg.MostAtOnce, 4096)
	w := &Writer{
		storage: cfg.Storage, chain: newChain(cfg.Key),
		timeout: cmp.Or(cfg.Timeout, 2*time.Second), patience: cmp.Or(cfg.Patience, 5*time.Second),
		linger: cmp.Or(cfg.Linger, 5*time.Millisecond), retry: cmp.Or(cfg.Retry, time.Second),
		queue: make(chan *entry, most), shed: make(chan *entry, most), closing: make(chan struct{}), ended: make(chan struct{}),
		batch: make([]*entry, 0, most),
	}
	w.entries.New = func() any { return &entry{done: make(chan error, 1), timer: time.NewTimer(w.patience)} }
	if err := w.check(ctx); err != nil {
		return nil, err
	}
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// check finds a storage that cannot be used when the service starts, and not at the
// first request.
func (w *Writer) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.storage.Read(ctx, func(head Head, _ iter.Seq2[Block, error]) error {
		if !w.chain.fits(head) {
			return ErrHead
		}
		return nil
	})
}

// Record implements Log. It returns nil once the record is committed. When ctx ends or
// the patience of the Writer does first, it returns the error of ctx, or ErrPatience, and
// the record may still be written. Any other error is that of the storage, or ErrClosed,
// and the event is not on record: the next commit is headed by a Gap that counts it.
func (w *Writer) Record(ctx context.Context, e Event) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	call := w.entries.Get().(*entry)
	call.event = e
	call.event.clean()
	call.timer.Reset(w.patience) // cheaper by microseconds than a deadline of ctx
	queue := w.queue
	if e.Outcome == Shed {
		queue = w.shed
	}
	select {
	case queue <- call:
	default: // a select of many is dear
		if err := w.enqueue(ctx, queue, call); err != nil {
			w.lose(1)
			return err
		}
	}
	select {
	case err := <-call.done:
		return w.answered(call, err)
	case <-ctx.Done():
		return ctx.Err() // run still has the entry
	case <-call.timer.C:
		return ErrPatience
	case <-w.ended:
	}
	select {
	case err := <-call.done:
		return w.answered(call, err)
	default: // it came after the last look into the queue
		w.lose(1)
		return ErrClosed
	}
}

// enqueue waits for room in the queue.
func (w *Writer) enqueue(ctx context.Context, queue chan<- *entry, call *entry) error {
	select {
	case queue <- call:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-call.timer.C:
		return ErrPatience
	case <-w.closing:
		return ErrClosed
	}
}

// answered keeps the entry, which nothing else has any more, for the next call.
func (w *Writer) answered(call *entry, err error) error {
	call.event = Event{}
	call.timer.Stop()
	w.entries.Put(call)
	return err
}

func (w *Writer) lose(n int) {
	w.failed.Add(uint64(n))
	w.lost.Add(int64(n))
}

// run commits until the Writer is closed, and then what is in the queue. While events
// are lost that no Gap counts it tries by itself: a service that gets no requests because
// it cannot record them would wait for one for ever, and one that is killed takes the
// count along.
func (w *Writer) run() {
	defer close(w.ended)
	for {
		var again <-chan time.Time
		if w.lost.Load() > 0 {
			again = time.After(w.retry)
		}
		select {
		case first := <-w.queue:
			w.gather()
			w.collect(first)
			w.commit()
		case first := <-w.shed:
			w.gather()
			w.collect(first)
			w.commit()
		case <-again:
			w.collect(nil)
			w.commit()
		case <-w.closing:
			for w.collect(nil) || w.lost.Load() > 0 {
				if w.commit() != nil && len(w.batch) == 0 {
					return // the gap itself could not be written
				}
			}
			return
		}
	}
}

// newcomer is how long gather waits for another caller.
const newcomer = 500 * time.Microsecond

// gather waits for more callers as long as they keep coming. A commit costs the processor
// as much as one or two requests, however many records it has: with three of them that is
// most of what audit costs, and with fifty little.
func (w *Writer) gather() {
	runtime.Gosched() // those that are about to record
	if len(w.batch) < 2 && w.queued() == 0 {
		return // who is alone is not to wait
	}
	began := time.Now()
	for before := -1; w.queued() > before && w.queued() < cap(w.batch) && time.Since(began) < w.linger; {
		before = w.queued()
		time.Sleep(newcomer)
	}
}

func (w *Writer) queued() int { return len(w.queue) + len(w.shed) }

// collect makes a batch of first and of what waits behind it, and reports whether there
// is anything in it.
func (w *Writer) collect(first *entry) bool {
	w.batch = w.batch[:0]
	if first != nil {
		w.batch = append(w.batch, first)
	}
	for _, queue := range []chan *entry{w.queue, w.shed} {
		for more := true; more && len(w.batch) < cap(w.batch); {
			select {
			case next := <-queue:
				w.batch = append(w.batch, next)
			default:
				more = false
			}
		}
	}
	return len(w.batch) > 0
}

// Close commits what callers wait for, tries once more to write down what was lost, and
// ends the goroutine. It returns an error if events were lost that no Gap counts; then
// the next process finds that this one has not ended well. The storage stays open. Calls of Record from then on return ErrClosed.
func (w *Writer) Close() error {
	w.closed.Do(func() { close(w.closing) })
	<-w.ended
	if lost := w.lost.Load(); lost > 0 {
		return fmt.Errorf("audit: %d events are not on record, and neither is that they are missing: the storage failed to the end", lost)
	}
	return w.leave()
}

// Stats are the counts of a Writer.
type Stats struct {
	Recorded uint64 `json:"recorded"` // events on record
	Failed   uint64 `json:"failed"`   // events that Record has refused
	Lost     int64  `json:"lost"`     // of these, those that no Gap counts yet
	Waiting  int64  `json:"waiting"`  // calls of Record under way
	Commits  uint64 `json:"commits"`
	Failures uint64 `json:"failures"` // commits that failed
	Failing  bool   `json:"failing"`  // the last commit failed
}

// Trouble returns why the last commit failed; nil if it did not. The next one is tried
// soon.
func (w *Writer) Trouble() error {
	if err := w.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Stats returns the counts so far.
func (w *Writer) Stats() Stats {
	return Stats{
		Recorded: w.recorded.Load(), Failed: w.failed.Load(), Lost: w.lost.Load(), Waiting: w.waiting.Load(),
		Commits: w.commits.Load(), Failures: w.failures.Load(), Failing: w.trouble.Load() != nil,
	}
}
