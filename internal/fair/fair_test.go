package fair

import (
	"testing"
	"time"
)

func TestACallerAloneHasAll(t *testing.T) {
	var s Shares
	for range 100 {
		if _, over := s.Enter(0, 1, 10); over {
			t.Fatal("over its share")
		}
	}
}

func TestActiveCallersHaveEqualParts(t *testing.T) {
	var s Shares
	s.Enter(0, 1, 10)
	overs := 0
	for range 20 { // its part of ten is five
		if _, over := s.Enter(0, 2, 10); over {
			overs++
		}
	}
	if overs != 15 {
		t.Errorf("%d of 20 are over the share", overs)
	}
	if _, over := s.Enter(0, 1, 10); over {
		t.Error("the other one, with two")
	}
}

func TestEqualCallersShareTheQueueToo(t *testing.T) {
	var s Shares
	s.Enter(0, 1, 10)
	s.Enter(0, 2, 10)
	for i := range 100 {
		if _, over := s.Enter(0, uint64(1+i%2), 10); over && i%2 == 1 {
			t.Fatalf("the %d-th is over", i)
		}
	}
}

// With more callers than slots an equal part is less than one piece of work. Each was
// over its share with its first, and none ever waited.
func TestOnePieceOfWorkIsNeverTooMuch(t *testing.T) {
	var s Shares
	for i := range uint64(3 * MaxCallers) {
		if key, over := s.Enter(0, i<<20, 10); over && i < MaxCallers {
			t.Fatalf("caller %d", i)
		} else if i%7 == 0 {
			s.Leave(0, key)
		}
	}
	if key, _ := s.Enter(0, 0, 10); key != 0 {
		t.Errorf("a caller that is known has the key %d", key)
	}
	if _, over := s.Enter(0, 0, 10); !over {
		t.Error("two, where there is less than one for each")
	}
}

// Where there are too many callers to tell apart, one that asks for much is not taken for
// all the others.
func TestFurtherCallersAreToldApartToo(t *testing.T) {
	var s Shares
	for i := range uint64(MaxCallers) {
		s.Enter(0, 1<<32+i, 10)
	}
	for range 100 {
		s.Enter(0, 5, 10)
	}
	if _, over := s.Enter(0, 5, 10); !over {
		t.Error("the one with a hundred")
	}
	if _, over := s.Enter(0, 6, 10); over {
		t.Error("another one")
	}
}

// A caller that asks for one thing after the other is active between them, and is
// forgotten after a while.
func TestACallerStaysActiveForALull(t *testing.T) {
	var s Shares
	key, _ := s.Enter(0, 1, 10)
	s.Leave(0, key)
	for range 10 {
		s.Enter(0, 2, 10)
	}
	if _, over := s.Enter(lull, 2, 10); !over {
		t.Error("the other caller was forgotten at once")
	}
	if _, over := s.Enter(3*lull, 2, 10); over || s.Active() != 1 {
		t.Errorf("over %v, %d active", over, s.Active())
	}
}

func TestLeavingTwiceOrUnknownDoesNothing(t *testing.T) {
	var s Shares
	s.Leave(0, 7)
	key, _ := s.Enter(0, 1, 10)
	s.Leave(0, key)
	s.Leave(0, key)
	if s.total != 0 {
		t.Errorf("total %d", s.total)
	}
}

func TestTheSameNameHasTheSameHash(t *testing.T) {
	if again := Hash(1, "a"); again != Hash(1, string([]byte("a"))) || Hash(1, "a") == Hash(2, "a") || Hash(1, "a") == Hash(1, "b") {
		t.Error("hash")
	}
	part := 0
	for i := range 1000 {
		if Hash(0, string(rune('a'+i%26))+time.Duration(i).String())%100 < 30 {
			part++
		}
	}
	if part < 250 || part > 350 {
		t.Errorf("%d of 1000 below 30 %%", part)
	}
}

// Whatever callers do, the counts add up and what is kept is bounded.
func FuzzShares(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 128, 129, 255})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var s Shares
		var keys []uint64
		now := time.Duration(0)
		for i, b := range steps {
			switch {
			case b < 100:
				key, _ := s.Enter(now, uint64(b), int(b)%7)
				keys = append(keys, key)
			case b < 120: // many new callers
				for j := range 500 {
					key, _ := s.Enter(now, uint64(i*1000+j+1000), 5)
					keys = append(keys, key)
				}
			case b < 220 && len(keys) > 0:
				s.Leave(now, keys[len(keys)-1])
				keys = keys[:len(keys)-1]
			default:
				now += time.Duration(b) * 100 * time.Millisecond
			}
		}
		sum := 0
		for _, e := range s.of {
			if e.load < 0 {
				t.Fatal("a negative load")
			}
			sum += e.load
		}
		if sum != s.total || sum != len(keys) || s.Active() > MaxCallers+further {
			t.Fatalf("%d in all, %d counted, %d expected, %d callers", sum, s.total, len(keys), s.Active())
		}
		for _, key := range keys {
			s.Leave(now, key)
		}
		s.Leave(now+10*lull, 0)
		if s.Active() != 0 {
			t.Fatalf("%d callers without work stay", s.Active())
		}
	})
}
