package budget

import (
	"slices"
	"time"
)

// Shares returns each lease's share of one kind, as if nothing were in use. A share is proportional
// to demand plus a small constant, so that a lease without demand can begin. If the total is less
// than one for each lease, leases without demand get nothing. If it is also less than one for each
// lease with demand, these leases take turns.
func (s State) Shares(kind int) []int {
	total, n := s.Totals[kind], len(s.Leases)
	weights, some := make([]int, n), make([]int, 0, n)
	for i, l := range s.Leases {
		weights[i] = l.Wants[kind] + max(1, total/(8*n))
		if l.Wants[kind] > 0 {
			some = append(some, i)
		}
	}
	switch {
	case total >= n || len(some) == 0:
		return divide(total, weights)
	case total < len(some):
		return s.turns(kind)
	}
	parts, of := make([]int, n), make([]int, len(some))
	for rank, i := range some {
		of[rank] = weights[i]
	}
	for rank, part := range divide(total, of) {
		parts[some[rank]] = part
	}
	return parts
}

// A turn lasts for turnRenewals renewals of each lease, which is two leases, and at least for
// leastTurn: a rate takes some time to bring a token.
const (
	turnRenewals = 2 * Renewals
	leastTurn    = 6 * time.Second

	// Renewals is how often a lease is renewed before it would end.
	Renewals = 6
)

// turns gives one each to as many leases with demand as the total permits. Each turn begins after
// the leases of the last turn, so that a lease with demand waits at most n/total turns. All
// replicas compute the same result from the epoch, which counts the renewals. They need no other
// agreement.
func (s State) turns(kind int) []int {
	total, n := s.Totals[kind], len(s.Leases)
	length := n * max(turnRenewals, Renewals*int(leastTurn/time.Duration(max(s.Leases[0].TTL, 1))))
	first := int(s.Epoch / uint64(length) % uint64(n) * uint64(total) % uint64(n))
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
// remainders. Each weight gets at least one, if the total permits.
func divide(total int, weights []int) []int {
	parts, sum := make([]int, len(weights)), 0
	lowest := 0
	if total >= len(weights) {
		lowest, total = 1, total-len(weights)
	}
	order := make([]int, len(weights))
	for i, w := range weights {
		order[i] = i
		sum += w
	}
	left := total
	for i, w := range weights {
		parts[i] = total * w / sum
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return total*weights[b]%sum - total*weights[a]%sum })
	for rank, i := range order {
		if rank < left {
			parts[i]++
		}
		parts[i] += lowest
	}
	return parts
}
