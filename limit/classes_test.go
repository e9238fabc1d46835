package limit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Times from one heavy-tailed distribution differ a lot, and sixteen times of each class were once
// enough to call one class slower. The limit then followed the mix of the classes down to a quarter
// of the right limit.
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

// A rare class that takes thirty times as long is known after its first few times.
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

// The owner reassigns a class to other work.
func TestAForgottenClassIsLearntAnew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c classes
	learn := func(n int, elapsed ...float64) { // took is indexed by class
		for i := range n {
			class := i % len(elapsed)
			c.learn(uint8(class), math.Log(elapsed[class])+0.2*r.NormFloat64(), true, false)
		}
	}
	learn(200, 1e7, 3e8)
	if c.of[1].offset == 0 || c.reference != 1 {
		t.Fatalf("the second class is not known to be long: %+v", c.of[1])
	}
	if changed, rescaled := c.forget(1); !changed || rescaled || c.reference != 0 || c.measured(1) || c.weight(1) != 0 {
		t.Errorf("after it was forgotten it is measured: %v, its weight is %v, the reference is %d, changed %v, rescaled %v",
			c.measured(1), c.weight(1), c.reference, changed, rescaled)
	}
	learn(200, 1e7, 1e7)
	if c.of[1].offset != 0 || c.weight(1) != 1 {
		t.Errorf("work like the other's takes %.1f times as long", c.weight(1))
	}
	if changed, rescaled := c.forget(1); c.reference == 0 && (changed || rescaled) {
		t.Error("to forget a class that the others are not compared with changes them")
	}
	if changed, rescaled := c.forget(0); !changed || !rescaled || c.seen {
		t.Error("nothing is known of any class, and something is compared")
	}
	if learn(200, 2e7, 1e7); !c.seen || !c.measured(0) || !c.measured(1) {
		t.Error("classes are not learnt after all were forgotten")
	}
}

// After Forget no law keeps state about the class.
func TestLawsForgetAClass(t *testing.T) {
	eachLaw(t, func(t *testing.T, c contestant) {
		law := c.build()
		f, ok := law.(Forgetter)
		if !ok {
			return
		}
		s := steady{law: law}
		for range 5000 {
			s.step()
		}
		f.Forget(3)
		f.Forget(255) // an invalid class from a faulty owner
		known := false
		switch law := law.(type) {
		case *adaptive:
			known = law.est.classes.of[3] != (class{})
		case *gradient2:
			known = law.long[3] != 0 || law.seen[3] != 0 || law.win.n[3] != 0 || law.win.sum[3] != 0
		case *passive:
			known = law.classes[3] != (passiveClass{})
		default:
			t.Fatalf("what does %T keep of a class?", law)
		}
		if known {
			t.Errorf("%T knows the class", law)
		}
		for range 5000 {
			s.step()
		}
	})
}
