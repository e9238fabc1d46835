package chart

import "math"

// Scale maps values to 0..1.
type Scale struct {
	Min, Max float64
	Log      bool
}

// FromZero is a linear scale from 0 to at least the largest value.
func FromZero(values ...float64) Scale {
	_, top := ends(values, 0)
	if !(top > 0) {
		top = 1
	}
	return Scale{0, top, false}
}

// Around covers the finite values with some air on both sides. When they are
// all positive and lie far apart it is logarithmic.
func Around(values ...float64) Scale {
	low, high := ends(values, math.Inf(-1))
	if low > high {
		return Scale{0, 1, false}
	}
	if low > 0 && high/low > 6 {
		air := math.Pow(high/low, .12)
		return Scale{low / air, high * air, true}
	}
	air := (high - low) * .15
	if air == 0 {
		air = max(math.Abs(high)*.2, .5)
	}
	if low >= 0 {
		return Scale{max(low-air, 0), high + air, false}
	}
	return Scale{low - air, high + air, false}
}

// LogAround covers the positive values with a logarithmic scale.
func LogAround(values ...float64) Scale {
	low, high := ends(values, 0)
	if low > high {
		return Scale{1, 10, true}
	}
	air := max(math.Pow(high/low, .06), 1.12)
	return Scale{low / air, high * air, true}
}

// ends are the smallest and the largest of the finite values above the floor.
func ends(values []float64, floor float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) && v > floor {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

// At places v; values outside lie on the edge.
func (s Scale) At(v float64) float64 {
	low, high := s.Min, s.Max
	if s.Log {
		v, low, high = math.Log(max(v, low)), math.Log(low), math.Log(high)
	}
	if !(high > low) || math.IsNaN(v) {
		return 0
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// Ticks returns about n round values within the scale.
func (s Scale) Ticks(n int) (ticks []float64) {
	if !(s.Max > s.Min) || !finite(s.Min) || !finite(s.Max) || s.Log && s.Min <= 0 {
		return nil
	}
	if s.Log {
		return s.logTicks(n)
	}
	// The step is 1, 2, 5 or 10 times a power of ten.
	least := (s.Max - s.Min) / float64(max(n, 1))
	step := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{2, 2.5, 2} {
		if step < least*.999 {
			step *= m
		}
	}
	for i := math.Ceil(s.Min/step - 1e-9); i*step <= s.Max+step*1e-9 && len(ticks) < 50; i++ {
		ticks = append(ticks, i*step+0) // +0 turns −0 into 0
	}
	return ticks
}

// logTicks are powers of ten with 2 and 5 between them, or 3, or only some of the powers,
// so that they are not too many.
func (s Scale) logTicks(n int) (ticks []float64) {
	lo, hi := int(math.Floor(math.Log10(s.Min))), int(math.Ceil(math.Log10(s.Max)))
	for _, steps := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		ticks = nil
		for e := lo; e <= hi; e++ {
			for _, m := range steps {
				if v := m * math.Pow(10, float64(e)); v >= s.Min && v <= s.Max && (len(steps) > 1 || e%max((hi-lo)/max(n, 1), 1) == 0) {
					ticks = append(ticks, v)
				}
			}
		}
		if len(ticks) <= n+1 {
			break
		}
	}
	if len(ticks) < 2 {
		return Scale{s.Min, s.Max, false}.Ticks(n)
	}
	return ticks
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
