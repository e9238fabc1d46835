package retrybudget

import (
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
)

func TestAnOutageSpendsTheBurstAndNoMore(t *testing.T) {
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	granted := 0
	for range 1000 {
		if b.TryTake() {
			granted++
		}
	}
	if granted != defaultBurst {
		t.Fatalf("granted %d extra attempts without a success, want %d", granted, defaultBurst)
	}
	for range 9 {
		b.Success()
	}
	if b.TryTake() {
		t.Fatal("nine tenths of a token paid for an attempt")
	}
	b.Success()
	if !b.TryTake() || b.TryTake() {
		t.Fatal("ten successes at a tenth each pay for exactly one attempt")
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, cfg := range []Config{{Ratio: -0.1}, {Ratio: 1.1}, {Ratio: nan}, {Burst: -1}, {Burst: maxBurst + 1}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestManyAtOnceGetExactlyWhatWasEarned(t *testing.T) {
	const callers, each = 8, 1000
	b, _ := New(Config{Ratio: 0.125, Burst: callers * each})
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if b.TryTake() {
					granted.Add(1)
				}
				b.Success()
			}
		})
	}
	wg.Wait()
	// The burst covers every attempt, so each is granted. The earned tokens are left,
	// except for tokens that were earned while the budget was full.
	if granted.Load() != callers*each {
		t.Fatalf("granted %d of %d", granted.Load(), callers*each)
	}
	if got, most := b.left(), float64(callers*each)*0.125; got > most || got < most-callers {
		t.Fatalf("%v tokens left of %v earned", got, most)
	}
}

// A reference model counts in exact fractions. A Budget must grant and hold the same.
func FuzzBudget(f *testing.F) {
	f.Add(uint32(100_000), uint8(10), []byte{0, 1, 1, 1, 0})
	f.Add(uint32(1), uint8(1), []byte{1, 0, 0})
	f.Add(uint32(300_000), uint8(2), []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}) // saves no more than the burst
	f.Add(uint32(1_000_000), uint8(3), []byte{1, 1, 1, 1, 0, 1})
	f.Fuzz(func(t *testing.T, millionths uint32, burst uint8, steps []byte) {
		ratio := float64(millionths) / one
		b, err := New(Config{Ratio: ratio, Burst: int(burst)})
		if err != nil {
			if millionths <= one {
				t.Fatal(err)
			}
			return
		}
		earn, most := big.NewRat(int64(millionths), one), big.NewRat(int64(burst), 1)
		if millionths == 0 {
			earn.SetFrac64(1, 10)
		}
		if burst == 0 {
			most.SetInt64(defaultBurst)
		}
		tokens, whole := new(big.Rat).Set(most), big.NewRat(1, 1)
		for i, step := range steps {
			if step%2 == 0 {
				b.Success()
				if tokens.Add(tokens, earn); tokens.Cmp(most) > 0 {
					tokens.Set(most)
				}
				continue
			}
			grant := tokens.Cmp(whole) >= 0
			if grant {
				tokens.Sub(tokens, whole)
			}
			if b.TryTake() != grant {
				t.Fatalf("step %d: granted %v with %v tokens", i, !grant, tokens)
			}
		}
		if want, _ := tokens.Float64(); b.left() != want {
			t.Fatalf("%v tokens, want %v", b.left(), want)
		}
	})
}

func TestAllocsOfABudget(t *testing.T) {
	b, _ := New(Config{})
	if n := testing.AllocsPerRun(100, func() { b.TryTake(); b.Success() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBudget(b *testing.B) {
	budget, _ := New(Config{})
	b.ReportAllocs()
	for b.Loop() {
		budget.TryTake()
		budget.Success()
	}
}
