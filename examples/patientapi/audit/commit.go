package audit

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// commit writes the batch and answers its callers.
func (w *Writer) commit() error {
	lost := w.lost.Load()
	w.events = w.events[:0]
	if lost > 0 {
		w.events = append(w.events, Event{Time: time.Now().UTC().Truncate(time.Microsecond), Outcome: Gap, Count: lost})
	}
	for _, e := range w.batch {
		w.events = append(w.events, e.event)
	}
	err := w.append()
	if err != nil {
		err = fmt.Errorf("audit: not recorded: %w", err)
		w.failures.Add(1)
		w.trouble.Store(&err)
		w.lose(len(w.batch))
	} else {
		w.commits.Add(1)
		w.trouble.Store(nil)
		w.lost.Add(-lost)
		w.recorded.Add(uint64(len(w.batch)))
	}
	for _, e := range w.batch {
		e.done <- err
	}
	clear(w.events) // callers' strings
	return err
}

func (w *Writer) append() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	var head Head
	err := w.storage.Append(ctx, func(tip Tip) (Block, Head, error) {
		if err := w.continues(tip); err != nil {
			return Block{}, tip.Head, err
		}
		w.block.Records = w.block.Records[:0]
		head = w.chain.extend(&w.block, tip.Head, w.events)
		return w.block, head, nil
	})
	if err == nil {
		w.head, w.block, w.last = head, w.last, w.block
	}
	return err
}

// continues says why nothing may be put behind a tip. Its own last block the writer
// knows; of another process's it looks at the end.
func (w *Writer) continues(tip Tip) error {
	switch {
	case !w.chain.fits(tip.Head):
		return ErrHead
	case w.last.Records != nil && tip.Head == w.head:
		if tip.Last.First == w.last.First && bytes.Equal(tip.Last.Records, w.last.Records) {
			return nil
		}
	case tip.Head.Sequence > w.head.Sequence || w.last.Records == nil:
		if w.chain.ends(tip) {
			return nil
		}
	}
	return ErrTip
}
