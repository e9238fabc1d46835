// Package budget divides a total among replicas by leases. It is pure: no clock, no
// lock, no goroutine and no network.
//
// A [State] is what all replicas see. One of them changes it by writing the next one,
// and only if nobody else has written meanwhile, so every state follows from the one
// before. A [Holder] is what one replica knows: what it may use, until when by its own
// clock, and for how long the others have not renewed.
package budget

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// The kinds of what is shared.
const (
	Slots = iota // pieces of work that run at a time
	Rate         // admissions a second
	Kinds
)

// Most bounds every amount, so that products of two fit.
const Most = 1 << 30

// MostTTL bounds for how long a lease is good: what a member that died had is nobody's for longer
// than that.
const MostTTL = time.Hour

// mostEpoch leaves room for more renewals than there will ever be.
const mostEpoch = math.MaxUint64 / 2

// Amounts is one number of each kind. A total of zero means that this kind is not shared.
type Amounts [Kinds]int

// Lease is what one replica has.
type Lease struct {
	ID    string  `json:"id"`    // of one life of a replica: never used again
	Name  string  `json:"name"`  // for people
	Token uint64  `json:"token"` // the epoch in which it was granted, which orders holders
	Beat  uint64  `json:"beat"`  // the epoch in which it was renewed last
	TTL   int64   `json:"ttl"`   // how long it is good after it was asked for, nanoseconds
	Has   Amounts `json:"has"`
	Wants Amounts `json:"wants"`

	others members // of a newer version
}

// State is a budget and its leases, by ID. What the leases have is never more than the
// total in sum, except just after a total has been lowered.
type State struct {
	Epoch  uint64  `json:"epoch"` // counts the states
	Totals Amounts `json:"totals"`
	Leases []Lease `json:"leases"`

	others members // of a newer version
}

// check says whether its numbers can be.
func (s State) check() error {
	wrong := !s.Totals.valid() || s.Epoch > mostEpoch
	for i, l := range s.Leases {
		wrong = wrong || l.ID == "" || i > 0 && s.Leases[i-1].ID >= l.ID || !l.Has.valid() || !l.Wants.valid() ||
			l.Token == 0 || l.Token > l.Beat || l.Beat > s.Epoch || l.TTL < 0 || l.TTL > int64(MostTTL)
	}
	if wrong {
		return errors.New("its numbers or its order cannot be")
	}
	return nil
}

func (a Amounts) valid() bool {
	return !slices.ContainsFunc(a[:], func(n int) bool { return n < 0 || n > Most })
}

// Of returns the lease of id; without one its Token is zero.
func (s State) Of(id string) Lease {
	if i, found := s.find(id); found {
		return s.Leases[i]
	}
	return Lease{}
}

func (s State) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Leases, id, func(l Lease, id string) int { return strings.Compare(l.ID, id) })
}

// next is a copy of the state in the epoch after it.
func (s State) next() State {
	s.Epoch++
	s.Leases = slices.Clone(s.Leases)
	return s
}

// Share sets the totals of the kinds that are not zero.
func (s State) Share(totals Amounts) State {
	for kind, n := range totals {
		if n > 0 {
			s.Totals[kind] = min(n, Most)
		}
	}
	return s
}

// Free is what nobody has; negative after a total has been lowered.
func (s State) Free(kind int) int {
	free := s.Totals[kind]
	for _, l := range s.Leases {
		free -= l.Has[kind]
	}
	return free
}

// Renew is the next state, in which the holder has a lease that is as near to its share as can
// be: more only if it is free, less only down to what is in use.
func (s State) Renew(t Terms, wants, inUse Amounts) State {
	s = s.next()
	i, found := s.find(t.ID)
	if !found {
		s.Leases = slices.Insert(s.Leases, i, Lease{ID: t.ID, Name: t.Name, Token: s.Epoch})
	}
	s.Leases[i].Beat, s.Leases[i].TTL = s.Epoch, int64(t.TTL)
	for kind, n := range wants {
		s.Leases[i].Wants[kind] = min(max(n, 0), Most)
	}
	for kind := range Kinds {
		s.Leases[i].Has[kind] = s.settle(kind, i, inUse[kind])
	}
	return s
}

// settle is what a lease will have of one kind. What is only a little too much is kept:
// shares follow demand, which is never still.
func (s State) settle(kind, i, inUse int) int {
	has, free, share := s.Leases[i].Has[kind], s.Free(kind), s.Shares(kind)[i]
	switch {
	case share > has:
		return has + min(share-has, max(free, 0))
	case free >= 0 && has-share < max(1, has/8):
		return has
	}
	return max(share, min(inUse, has))
}

// Leave is the next state, without id.
func (s State) Leave(id string) State {
	s = s.next()
	s.Leases = slices.DeleteFunc(s.Leases, func(l Lease) bool { return l.ID == id })
	return s
}

// Expire is Leave for a lease that has not been renewed since beat.
func (s State) Expire(id string, beat uint64) State {
	if l := s.Of(id); l.Token == 0 || l.Beat != beat {
		return s
	}
	return s.Leave(id)
}
