package limit

import (
	"math"
	"time"
)

// logSteps is the number of steps from 1 to 2. logTable has the logarithm of the middle of each
// step, and a cubic extends it to the whole step.
const logSteps = 128

var logTable = func() (t [logSteps]struct{ inverse, log float64 }) {
	for i := range t {
		middle := 1 + (float64(i)+0.5)/logSteps
		t[i].inverse, t[i].log = 1/middle, math.Log(middle)
	}
	return t
}()

// logOf is the natural logarithm of a time in nanoseconds, to ten digits. It is 0 for less than
// 1 ns. logOf runs for each finished piece of work, where math.Log would be the most expensive
// step.
func logOf(d time.Duration) float64 {
	bits := math.Float64bits(float64(max(d, 1)))
	const fraction = 1<<52 - 1
	step := &logTable[bits>>45&(logSteps-1)]
	r := math.Float64frombits(bits&fraction|1023<<52)*step.inverse - 1
	return float64(int(bits>>52)-1023)*math.Ln2 + step.log + r*(1-r*(0.5-r*(1./3)))
}
