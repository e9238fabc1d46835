package limit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Times of one distribution with a heavy tail differ a lot, and sixteen of each
// class were once enough to call one class slower. The limit then followed the
// mix of the classes down to a quarter of the truth.
func TestClassesOfOneKindAreNotToldApart(t *testing.T) {
	wrong := 0
	const runs = 300
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		var c classes
		for range 2000 {
			class := uint8(0)
			if r.Float64() < 0.8 {
				class = 3
			}
			c.learn(class, 18+1.2*r.NormFloat64(), true, false)
		}
		if c.of[0].offset != 0 || c.of[3].offset != 0 {
			wrong++
		}
	}
	if wrong > runs/100 {
		t.Errorf("in %d of %d runs classes of the same work were told apart", wrong, runs)
	}
}

// A class that is rare and takes thirty times as long is known by its first few.
func TestALongAndRareClassIsToldApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c classes
	for i := 0; c.of[0].offset == 0; i++ {
		if i > 150 {
			t.Fatal("not told apart by 150 times, a tenth of them of the long class")
		}
		if i%10 == 9 {
			c.learn(0, math.Log(3e8)+0.2*r.NormFloat64(), true, false)
		} else {
			c.learn(3, math.Log(1e7)+0.3*r.NormFloat64(), true, false)
		}
	}
	if got := c.of[0].offset; math.Abs(got-math.Log(30)) > 0.5 {
		t.Errorf("the long class takes %.1f times as long, want 30", math.Exp(got))
	}
}
