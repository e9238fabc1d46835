// Package budget divides a total among replicas by leases. It is pure: it has no clock, lock,
// goroutine or network.
//
// A [State] is visible to all replicas. A replica changes it by writing the next state, and only if
// no other replica has written meanwhile, so every state follows from the previous one. A [Holder]
// is one replica's knowledge: the amounts that it may use, their end by its own clock, and how long
// each other replica has not renewed.
package budget

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// The kinds of shared amounts.
const (
	Slots = iota // pieces of work that run at a time
	Rate         // admissions a second
	Kinds
)

// Most bounds every amount, so that the product of two amounts does not overflow
// 64 bits.
const Most = 1 << 30

// MostTTL bounds how long a lease lasts. The amounts of a dead member stay unused for longer than
// its TTL.
const MostTTL = time.Hour

// mostEpoch leaves room for more renewals than will ever happen.
const mostEpoch = math.MaxUint64 / 2

// Amounts is one number of each kind. A total of zero means that the kind is not shared.
type Amounts [Kinds]int

// Lease is one replica's lease.
type Lease struct {
	ID    string // of one life of a replica: never reused
	Token uint64 // the epoch in which the lease was granted
	Beat  uint64 // the epoch of the latest renewal
	TTL   int64  // how long the lease lasts after its request was sent, nanoseconds
	Has   Amounts
	Wants Amounts

	Account // zero except in a root

	newer string // words of a newer version
}

// State is a budget and its leases, by ID. The leases sum to at most the total, except just after a
// total has been lowered.
type State struct {
	Epoch  uint64 // counts the states
	Totals Amounts
	Leases []Lease

	Group // zero while the budget is one value

	newer string // words of a newer version
}

// check returns an error if the state's numbers or order are invalid.
func (s State) check() error {
	wrong := !s.Totals.valid() || !s.Whole.valid() || s.Members < 0 || s.Members > Most || s.Epoch > mostEpoch
	for i, l := range s.Leases {
		wrong = wrong || l.ID == "" || i > 0 && s.Leases[i-1].ID >= l.ID || !l.Has.valid() || !l.Wants.valid() ||
			l.Members < 0 || l.Members > Most || l.Token == 0 || l.Token > l.Beat || l.Beat > s.Epoch || l.TTL < 0 || l.TTL > int64(MostTTL)
	}
	if wrong {
		return errors.New("its numbers or its order cannot be")
	}
	return nil
}

func (a Amounts) valid() bool {
	return !slices.ContainsFunc(a[:], func(n int) bool { return n < 0 || n > Most })
}

// Of returns the lease of id. If there is none, its Token is zero.
func (s State) Of(id string) Lease {
	if i, found := s.find(id); found {
		return s.Leases[i]
	}
	return Lease{}
}

func (s State) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Leases, id, func(l Lease, id string) int { return strings.Compare(l.ID, id) })
}

// next returns a copy of the state with the next epoch.
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

// Free returns the amount that no lease has; negative after a total has been lowered.
func (s State) Free(kind int) int {
	free := s.Totals[kind]
	for _, l := range s.Leases {
		free -= l.Has[kind]
	}
	return free
}

// Renew returns the next state, with the holder's lease as near to its share as possible. The lease
// grows only by free amounts, and shrinks only to the amount in use.
func (s State) Renew(t Terms, wants, inUse Amounts) State {
	s = s.next()
	i, found := s.find(t.ID)
	if !found {
		s.Leases = slices.Insert(s.Leases, i, Lease{ID: t.ID, Token: s.Epoch})
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

// settle returns a lease's next amount of one kind. A lease keeps a small excess: shares follow
// demand, which always fluctuates.
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

// Leave returns the next state, without the lease of id.
func (s State) Leave(id string) State {
	s = s.next()
	s.Leases = slices.DeleteFunc(s.Leases, func(l Lease) bool { return l.ID == id })
	return s
}

// Expire is Leave for a lease that has not been renewed since beat; otherwise it returns s.
func (s State) Expire(id string, beat uint64) State {
	if l := s.Of(id); l.Token == 0 || l.Beat != beat {
		return s
	}
	return s.Leave(id)
}
