package audit

import (
	"context"
	"time"
)

// Roll is a Storage that knows which processes write to it, and finds those that were
// killed: what such a one could not put on record, and would have counted by a Gap, nobody
// knows. A Writer enters when it is made, and leaves when it is closed and all is told.
type Roll interface {
	// Enter notes that this process writes. It calls ended, before that, for each process
	// that neither runs nor has left, with the time at which that one has entered, and
	// strikes it off if ended returns nil. Where several enter at the same time, one of them
	// does so.
	Enter(ctx context.Context, ended func(since time.Time) error) error

	// Leave strikes this process off.
	Leave(ctx context.Context) error
}

// enter puts on record that processes before this one have not ended well. Where that
// cannot be written they stay on the roll, for the next start to find.
func (w *Writer) enter(ctx context.Context) error {
	roll, ok := w.storage.(Roll)
	if !ok {
		return nil
	}
	return roll.Enter(ctx, func(since time.Time) error {
		w.events = append(w.events[:0], Event{
			Time: time.Now().UTC().Truncate(time.Microsecond), RequestID: since.UTC().Format(time.RFC3339), Outcome: Unclean,
		})
		return w.append()
	})
}

// leave is for a writer that has nothing to tell any more.
func (w *Writer) leave() error {
	roll, ok := w.storage.(Roll)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	return roll.Leave(ctx)
}
