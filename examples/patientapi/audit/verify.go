package audit

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// maxFaults is how many faults a Result lists.
const maxFaults = 20

// Fault is one thing that does not fit.
type Fault struct {
	Sequence int64  `json:"sequence"` // of the record
	What     string `json:"what"`
}

// Result is what Verify has found.
type Result struct {
	Records int64
	Lost    int64     // events that gaps stand for
	Unclean int64     // processes that have not ended well: they may have lost more
	First   time.Time // of the first record
	Last    time.Time
	Head    Head    // where the chain ends; keep it elsewhere
	Found   int64   // faults
	Faults  []Fault // the first of them

	// Keyed says that the records were made with a key, and that Verify was not given it.
	// Then their numbers and order were compared, and where the chain ends; what they say
	// was not.
	Keyed bool
}

// Verify reads the whole chain and says what does not fit. Known is a Head that an
// earlier Verify has returned and that was kept elsewhere, or the zero Head. It calls
// progress, if that is not nil, with the number of records read, every thousand or so.
//
// An error means that the storage could not be read, and that the chain is not
// verified. Faults are no error.
func Verify(ctx context.Context, s Storage, key Key, known Head, progress func(records int64)) (Result, error) {
	v := verifier{chain: newChain(key), known: known, expected: 1}
	told := int64(0)
	err := s.Read(ctx, func(head Head, blocks iter.Seq2[Block, error]) error {
		v.Keyed = len(key) == 0 && !v.chain.fits(head) // unless the first record says otherwise
		for b, err := range blocks {
			if err != nil {
				return fmt.Errorf("audit: what follows record %d cannot be read: %w", v.expected-1, err)
			}
			v.open(b)
			if progress != nil && v.Records >= told+1000 {
				told = v.Records
				progress(told)
			}
		}
		v.end(head)
		return nil
	})
	return v.Result, err
}

// verifier walks along a chain.
type verifier struct {
	Result
	chain    *chain
	known    Head
	expected int64 // number of the next record
	previous Hash  // of the record before it, as it is stored
}

func (v *verifier) open(b Block) {
	records, err := b.Open()
	if err != nil {
		v.fault(b.First, fmt.Sprintf("the records that begin here were altered: %v", err))
	}
	for i := range records {
		v.look(&records[i])
	}
}

func (v *verifier) look(r *Record) {
	v.count(&r.Event)
	switch {
	case r.Sequence < v.expected:
		v.fault(r.Sequence, "there is more than one record of this number, or it is below 1")
	case r.Sequence == v.expected+1:
		v.fault(v.expected, "the record is missing")
	case r.Sequence > v.expected:
		v.fault(v.expected, fmt.Sprintf("the records from here to %d are missing", r.Sequence-1))
	case v.keyed(r):
	case r.Hash != v.chain.sum(r.Sequence, v.previous, &r.Event):
		v.fault(r.Sequence, "the record does not fit its hash: it was altered, inserted or moved, or the one before it was replaced, or the key is another one")
	}
	// What was found here is not found again at every record behind it.
	v.expected, v.previous = r.Sequence+1, r.Hash
	if r.Sequence == v.known.Sequence && r.Hash != v.known.Hash {
		v.fault(r.Sequence, "the record is not the one that the kept head stands for: the chain was rewritten")
	}
}

// keyed reports whether a record needs a key that Verify was not given: none fits its
// hash then. A chain of which the first one does was made without a key.
func (v *verifier) keyed(r *Record) bool {
	if !v.Keyed {
		return false
	}
	fits := r.Hash == v.chain.sum(r.Sequence, v.previous, &r.Event)
	if fits && v.Records > 1 {
		v.fault(r.Sequence, "the record was made without a key, and those before it with one")
	}
	v.Keyed = !fits
	return v.Keyed
}

func (v *verifier) count(e *Event) {
	v.Records++
	if v.Records == 1 {
		v.First = e.Time
	}
	v.Last = e.Time
	switch e.Outcome {
	case Gap:
		v.Lost += e.Count
	case Unclean:
		v.Unclean++
	}
}

// end compares where the chain ends with where it should.
func (v *verifier) end(head Head) {
	v.Head = head
	last := v.expected - 1
	switch {
	case head.Sequence > last:
		v.fault(last+1, fmt.Sprintf("the records from here to %d, where the head is, are missing: the end was removed", head.Sequence))
	case head.Sequence < last:
		v.fault(head.Sequence+1, "the records from here on are behind the head: they were inserted, or the head was altered")
	case head.Hash != v.previous:
		v.fault(last, "the last record is not the one that the head stands for")
	case !v.Keyed && !v.chain.fits(head):
		v.fault(last, "the head was altered, or it was made with another key")
	}
	if v.known.Sequence > last {
		v.fault(last+1, fmt.Sprintf("the records from here to %d, where the kept head is, are missing: the end was removed", v.known.Sequence))
	}
}

func (v *verifier) fault(sequence int64, what string) {
	v.Found++
	if len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, Fault{sequence, what})
	}
}
