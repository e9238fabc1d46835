package budget

import (
	"slices"
	"time"
)

// Shares is what each lease would have of one kind if nothing were in use: in proportion
// to what it wants, and a little more, so that one that wants nothing can begin. With less
// than one for each, those that want nothing have nothing, and if there is still not one
// for each of the others, they take turns.
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

// A turn is so many renewals of each, which is two leases, and so long at least: a rate
// needs a while until it has brought a token.
const (
	turnRenewals = 2 * Renewals
	leastTurn    = 6 * time.Second

	// Renewals is how often a lease is renewed in its time.
	Renewals = 6
)

// turns gives one each to as many of those that want any as there are. Each turn it begins
// with the ones after, so that everybody who wants any waits for n/total turns at most. All compute
// the same from the epoch, which counts the renewals: they need not agree on anything else.
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

// divide splits total into whole numbers in proportion to weights above zero, by the
// largest remainders, with at least one for each if there are so many.
func divide(total int, weights []int) []int {
	parts, sum := make([]int, len(weights)), 0
	least := 0
	if total >= len(weights) {
		least, total = 1, total-len(weights)
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
		parts[i] += least
	}
	return parts
}
