package processors

import (
	"math"
	"testing"
	"time"
)

// door returns a Door at which n calls of level 1 have arrived since the previous reading.
func door(n float64) Door { return Door{Arrivals: [Levels]float64{1: n}, Enforced: n} }

func TestTheFirstReadingsShedNothing(t *testing.T) {
	var c Control
	if c.Share() != 1 || c.Wait() != 0 || c.Would() != 1 || c.Shares(0) != [Levels]float64{1, 1, 1, 1} {
		t.Errorf("the zero value sheds: %+v", c)
	}
	huge := Reading{Runnable: 1e6, Waited: 1e6, Squares: 1e9, Door: door(1e6)}
	for range 2 + afterGap { // the first has no previous reading, then waits began earlier, then one may be chance
		huge.At += Every
		if c.Read(huge); c.Share() != 1 {
			t.Errorf("shed after %v: %+v", huge.At, c)
		}
	}
}

// A reading that is older than stale is ignored.
func TestAStaleReadingIsForgotten(t *testing.T) {
	var c Control
	r := Reading{Runnable: 1000, Waited: 100, Squares: 100, Door: door(1000)}
	for range 8 {
		r.At += Every
		c.Read(r)
	}
	if c.Share() == 1 {
		t.Fatalf("nothing is shed: %+v", c)
	}
	r.At += stale + 1
	if c.Read(r); c.Share() != 1 || c.Wait() != 0 {
		t.Errorf("%+v", c)
	}
}

// If most arrivals may not be shed, the share has no effect and must not fall.
func TestNothingIsShedThatNobodyEnforces(t *testing.T) {
	var c Control
	r := Reading{Runnable: 1000, Waited: 100, Squares: 100, Door: door(1000)}
	r.Enforced = 400
	for range 100 {
		r.At += Every
		c.Read(r)
	}
	if c.Share() != 1 || c.Would() != .5 {
		t.Errorf("share %v, would admit %v", c.Share(), c.Would())
	}
}

// After any readings, shares are between leastShare and 1, a more important level has no smaller
// share than a less important one, and the share does not fall while no goroutine waits.
func FuzzControl(f *testing.F) {
	f.Add([]byte{50, 3, 1, 10, 50, 200, 20, 80, 50, 255, 255, 255, 50, 0, 0, 0})
	f.Add([]byte{0, 255, 255, 0, 255, 255, 0, 255, 50, 0, 255, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Control
		at := time.Duration(0)
		for i := 0; len(data) >= 4; i++ {
			at += time.Duration(data[0]) * time.Millisecond
			waits := float64(data[2])
			r := Reading{At: at, Runnable: int(data[1]) * int(data[1]), Waited: waits * waits / 100, Squares: waits * waits * waits / 1000}
			r.Service = time.Duration(data[2]) * time.Millisecond * 20
			for lv := range r.Arrivals {
				r.Arrivals[lv] = float64(data[0]>>(2*lv)&3) * float64(data[3])
				r.Enforced += r.Arrivals[lv]
			}
			if data[3]%7 == 0 {
				r.Enforced = 0
			}
			data = data[4:]
			before := c.Share()
			c.Read(r)
			share, of := c.Share(), c.Shares(0)
			if !(share >= leastShare-1e-9 && share <= 1) || math.IsNaN(c.wait) || c.Wait() < 0 {
				t.Fatalf("reading %d: %+v", i, c)
			}
			if r.Runnable == 0 && share < before {
				t.Fatalf("reading %d: nobody waits and more is shed: %v, %v", i, before, share)
			}
			total, admitted := 0., 0.
			for lv := range of {
				if of[lv] < leastShare-1e-9 || of[lv] > 1 || lv > 0 && of[lv] > of[lv-1]+1e-9 {
					t.Fatalf("reading %d: share %v, of the levels %v", i, share, of)
				}
				total, admitted = total+c.mix[lv], admitted+c.mix[lv]*of[lv]
			}
			if total > 0 && math.Abs(admitted/total-share) > leastShare*Levels+1e-9 {
				t.Fatalf("reading %d: share %v, of the levels %v of %v", i, share, of, c.mix)
			}
		}
	})
}

// A level without arrivals for a long time once had the least share, although nothing was shed.
func TestARareLevelIsNotShedForNothing(t *testing.T) {
	var c Control
	r := Reading{Door: door(100)}
	r.Arrivals[3] = 1
	for range 20_000 { // 13 minutes
		r.At += Every
		c.Read(r)
		r.Arrivals[3] = 0
		if c.Shares(0) != [Levels]float64{1, 1, 1, 1} {
			t.Fatalf("after %v: %v", r.At, c.Shares(0))
		}
	}
	if c.mix[3] != 0 {
		t.Errorf("%v arrivals are left", c.mix[3])
	}
}

// The least share is a share of all arrivals, and goes to the most important ones first.
func TestTheLeastShareGoesToTheImportant(t *testing.T) {
	c := Control{log: -3}
	c.mix = [Levels]float64{10, 0, 0, 90}
	if of := c.Shares(.8); of[0] != 1 || math.Abs(of[3]-.7/.9) > 1e-9 {
		t.Errorf("%v", of)
	}
}
