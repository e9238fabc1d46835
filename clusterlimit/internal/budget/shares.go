package budget

import (
	"cmp"
	"slices"
	"time"
)

// Shares returns each lease's share of one kind, as if nothing were in use. A share is proportional
// to demand plus a small constant for each member, so that a member without demand can begin. If
// the total is less than one for each member, leases without demand get nothing. If the total is
// also less than one for each lease with demand, these leases take turns.
func (s State) Shares(kind int) []int {
	total, n := s.Totals[kind], len(s.Leases)
	weights, floors, sum := make([]int, n), make([]int, n), 0
	some := make([]int, 0, n)
	for i, l := range s.Leases {
		floors[i] = max(l.Members, 1)
		sum += floors[i]
		if l.Wants[kind] > 0 {
			some = append(some, i)
		}
	}
	for i, l := range s.Leases {
		weights[i] = l.Wants[kind] + max(1, total/(8*sum))*floors[i]
	}
	switch {
	case total >= sum || len(some) == 0:
		return divide(total, weights, floors)
	case total < len(some):
		return s.turns(kind)
	}
	parts, of, floorsOf := make([]int, n), make([]int, len(some)), make([]int, len(some))
	for rank, i := range some {
		of[rank], floorsOf[rank] = weights[i], floors[i]
	}
	for rank, part := range divide(total, of, floorsOf) {
		parts[some[rank]] = part
	}
	return parts
}

// A turn lasts for turnLeases leases, and at least for leastTurn: a rate takes some time to bring a
// token.
const (
	turnLeases = 2
	leastTurn  = 6 * time.Second
)

// Renewals returns how often a lease is renewed before it would end, in a budget of that many
// replicas.
func Renewals(replicas int) int {
	if replicas > MostAlone { // groups read and write more than one value
		return 3
	}
	return 6
}

// turns gives one each to as many leases with demand as the total permits. Each turn begins after
// the leases of the last turn, so that a lease with demand waits at most n/total turns. All
// replicas compute the same result from the epoch, which counts the renewals. They need no other
// agreement. A turn of a group lasts until all members of a group have had theirs.
func (s State) turns(kind int) []int {
	total, n, members := s.Totals[kind], len(s.Leases), 1
	for _, l := range s.Leases {
		members = max(members, min(l.Members, MostAlone))
	}
	length := n * members * Renewals(s.Members) * max(turnLeases, int(leastTurn/time.Duration(max(s.Leases[0].TTL, int64(time.Millisecond)))))
	number := s.Epoch / uint64(length)
	first := int(number % uint64(n) * uint64(total) % uint64(n))
	parts := make([]int, n)
	for at := range n {
		i := (first + at) % n
		if s.Leases[i].Wants[kind] > 0 && total > 0 {
			parts[i] = 1
			total--
		}
	}
	return parts
}

// divide splits total into whole numbers in proportion to positive weights, by the largest
// remainders. Each weight gets at least its floor if the total permits that, or else at least one if
// the total permits that.
func divide(total int, weights, floors []int) []int {
	parts, sum, reserved := make([]int, len(weights)), int64(0), 0
	for i, w := range weights {
		sum += int64(w)
		reserved += floors[i]
	}
	floor := func(i int) int { return floors[i] }
	switch {
	case total >= reserved:
	case total >= len(weights):
		reserved, floor = len(weights), func(int) int { return 1 }
	default:
		reserved, floor = 0, func(int) int { return 0 }
	}
	total -= reserved
	order := make([]int, len(weights))
	left := total
	for i, w := range weights {
		order[i] = i
		parts[i] = int(int64(total) * int64(w) / sum)
		left -= parts[i]
	}
	rest := func(i int) int64 { return int64(total) * int64(weights[i]) % sum }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest(b), rest(a)) })
	for rank, i := range order {
		if rank < left {
			parts[i]++
		}
		parts[i] += floor(i)
	}
	return parts
}
