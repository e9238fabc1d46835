package budget

import (
	"slices"
	"strconv"
	"time"
)

// A budget with many replicas has groups. Each group is a State of its own, and a further State, the
// root, divides the budget among the groups: a lease of the root is the account of a group. An
// account has no end, so a group never loses it while one of its members renews.
//
// Let A be an account's amount, T the Totals of its group, and L the sum of the group's leases. At
// any time T and L are at most A, and all A sum to at most the budget. Root and group are changed
// one after the other, so both have a number, Seq, which orders the changes:
//
//	group.Seq == account.Seq   open:    T may be raised to A. A may be raised.
//	group.Seq >  account.Seq   pledged: T has been lowered, and nobody raises it. L can only fall.
//	                                    A may be lowered to T or L, which sets account.Seq to group.Seq.
//
// So amounts leave a group in three steps: the group's Totals are lowered and pledged; its members
// give back what exceeds their new shares; the account is lowered. Amounts arrive in two: the account
// is raised, and then the group's Totals. Any member takes any step, and a member that dies between
// two steps leaves only unused amounts behind, until the next visit.

// Group is the part of a State that only a group has.
type Group struct {
	Seq     uint64  // orders the changes of the account; zero: the budget is one value
	Whole   Amounts // the totals of the whole budget
	Members int     // in the whole budget, as last known
}

// Account is the part of a Lease that only an account in a root has.
type Account struct {
	Seq     uint64
	Members int
	Missed  int // visits of other groups since this group's latest visit
}

const (
	// MostAlone is how many leases a budget of one value may have, and MostMembers how many a
	// group may have. Further replicas join another group.
	MostAlone   = 40
	MostMembers = 32
	// mostMissed is how many visits a group may miss before another group's members look after it.
	mostMissed = 6
	// calmRoot is how many members a root serves with one visit for each renewal of all members.
	calmRoot = 2048
	// FirstGroup is the ID of the group that the budget's single value has become.
	FirstGroup = "0"
)

// Split returns the budget's single value as a group. The new group is pledged: a root does not know
// of it yet.
func (s State) Split() State {
	s = s.next()
	s.Group = Group{Seq: 1, Whole: s.Totals, Members: len(s.Leases)}
	return s
}

// Order is what a visit of the root leaves to do in the group: the Totals and the Group to set, if
// the group's Seq is still at most From.
type Order struct {
	From   uint64
	Totals Amounts
	Group
}

// Urgent reports whether the order changes more than what the group knows of the whole budget.
func (o Order) Urgent(s State) bool {
	return o.From != o.Seq || s.Seq <= o.From && s.Totals != o.Totals
}

// apply returns the group with the order carried out.
func (o Order) apply(s State) State {
	if o.Seq == 0 { // no visit yet
		return s
	}
	if s.Seq <= o.From {
		if o.Seq == s.Seq { // open: a later order may have given more
			for kind := range Kinds {
				o.Totals[kind] = max(o.Totals[kind], s.Totals[kind])
			}
		}
		s.Totals, s.Seq = o.Totals, o.Seq
	}
	s.Whole, s.Members = o.Whole, o.Members
	return s
}

// DueVisit reports whether the replica that has written the group should visit the root. One visit
// is due each time that all members have renewed, so the members take turns.
func (s State) DueVisit() bool {
	rounds := len(s.Leases) * (1 + s.Members/calmRoot)
	return s.Seq > 0 && rounds > 0 && s.Epoch%uint64(rounds) == 0
}

// Visit returns the next root, with the account of the group id as near to its share as possible,
// and what is left to do in the group. The group is a state that has been read or written after the
// latest order. IDs in missing are of groups that seem to be without members.
func (s State) Visit(id string, ttl time.Duration, group State) (next State, o Order, missing []string) {
	for kind, n := range group.Whole {
		if s.Totals[kind] == 0 { // the root is new
			s.Totals[kind] = n
		}
	}
	before, settled := s.Of(id), Amounts{}
	for kind := range Kinds {
		settled[kind] = max(group.Totals[kind], group.Totals[kind]-group.Free(kind))
	}
	if before.Token == 0 {
		s = s.next()
		i, _ := s.find(id)
		before = Lease{ID: id, Token: s.Epoch}
		for kind, n := range settled { // more than is free, if it was read long ago, and the account closed since
			before.Has[kind] = min(n, max(s.Free(kind), 0))
		}
		s.Leases = slices.Insert(s.Leases, i, before)
	}
	inUse, wants := before.Has, Amounts{} // of an open account nothing is given back
	if group.Seq > before.Seq {
		inUse = settled
	}
	for _, l := range group.Leases {
		for kind, n := range l.Wants {
			wants[kind] += min(n, Most-wants[kind])
		}
	}
	next = s.Renew(Terms{ID: id, TTL: ttl}, wants, inUse)
	i, _ := next.find(id)
	mine := &next.Leases[i]
	mine.Account = Account{Seq: max(group.Seq, before.Seq), Members: len(group.Leases)}
	next = next.missed(i, before.Beat)
	o = Order{From: mine.Seq, Totals: mine.Has, Group: Group{Seq: mine.Seq, Whole: next.Totals, Members: next.Members}}
	for kind := range Kinds {
		share := next.Shares(kind)[i]
		if over := mine.Has[kind] - share; over > 0 && (next.Free(kind) < 0 || over >= max(1, mine.Has[kind]/8)) {
			o.Totals[kind], o.Seq = share, mine.Seq+1
		}
		if group.Totals[kind] > mine.Has[kind] { // the store has lost the root, or has an old one
			o.Seq = mine.Seq + 1
		}
	}
	return next, o, next.missing(i)
}

// missed counts a visit for the groups after the i-th that have not visited since its own latest
// visit, up to the first group that has. So every group without members is counted by one other
// group. It also counts the members.
func (s State) missed(i int, since uint64) State {
	s.Members = 0
	for _, l := range s.Leases {
		s.Members += l.Members
	}
	for n := 1; n < len(s.Leases); n++ {
		l := &s.Leases[(i+n)%len(s.Leases)]
		if l.Beat > since {
			break
		}
		l.Missed = min(l.Missed+1, mostMissed)
	}
	return s
}

// missing returns the groups after the i-th that have missed too many visits.
func (s State) missing(i int) (ids []string) {
	for n := 1; n < len(s.Leases); n++ {
		l := s.Leases[(i+n)%len(s.Leases)]
		if l.Missed == 0 {
			break
		}
		if l.Missed == mostMissed {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// Retire returns a group without leases as it has to be before its account is closed, and whether it
// is so already.
func (s State) Retire(account Lease) (next State, done bool) {
	if s.Seq > account.Seq && s.Totals == (Amounts{}) {
		return s, true
	}
	s = s.next()
	s.Totals, s.Seq = Amounts{}, max(s.Seq, account.Seq)+1
	return s, false
}

// Grow returns the next root with twice as many groups, for many replicas that join at once.
func (s State) Grow(ttl time.Duration) State {
	s = s.next()
	account := Lease{Token: s.Epoch, Beat: s.Epoch, TTL: int64(ttl)}
	for id, more := 0, max(len(s.Leases), 1); more > 0; id++ {
		account.ID = strconv.Itoa(id)
		if i, found := s.find(account.ID); !found {
			s.Leases = slices.Insert(s.Leases, i, account)
			more--
		}
	}
	return s
}

// Open returns the groups that may have room for a replica that joins.
func (s State) Open(members int, full map[string]bool) (ids []string) {
	for _, l := range s.Leases {
		if l.Members < members && !full[l.ID] {
			ids = append(ids, l.ID)
		}
	}
	return ids
}
