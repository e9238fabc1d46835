package judge

import "math/rand/v2"

// futures is the number of continuations of a session that are drawn.
const futures = 200

// moreRuns are the numbers of further repeats that are tried. More is no advice.
var moreRuns = []int{1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200}

// more is the least of moreRuns after which nine in ten continuations are settled at the next look;
// 0 if even the largest is not enough. A continuation draws its values, and what a contestant
// differs from itself, from those of the session. So one disturbed repeat of five is expected again
// in one of five, and does not make all others uncertain.
func (c *court) more() int {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(len(c.values))))
	longest := moreRuns[len(moreRuns)-1]
	draw := func(of []float64) []float64 {
		out := make([]float64, 0, len(of)+longest)
		for out = append(out, of...); len(of) > 0 && len(out) < cap(out); {
			out = append(out, of[rng.IntN(len(of))])
		}
		return out
	}
	var values, floors [][]float64
	for range futures {
		values, floors = append(values, draw(c.order)), append(floors, draw(c.Floor))
	}
	if c.values[0] == c.values[len(c.values)-1] && len(c.Floor) == 0 { // nothing would change
		return 0
	}
	later := *c
	later.Looks++
	for _, n := range moreRuns {
		unsettled := 0
		for i := 0; i < futures && unsettled <= futures/10; i++ {
			later.order, later.Floor = values[i][:len(c.order)+n], floors[i]
			if len(c.Floor) > 0 {
				later.Floor = floors[i][:len(c.Floor)+n]
			}
			if later.weigh(); later.verdict() == Inconclusive {
				unsettled++
			}
		}
		if unsettled <= futures/10 {
			return n
		}
	}
	return 0
}
