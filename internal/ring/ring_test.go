package ring

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// twin is the same queue, obviously right.
type twin struct {
	mu     sync.Mutex
	values []int
	closed bool
}

func (q *twin) Push(v, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.values) >= limit {
		return false
	}
	q.values = append(q.values, v)
	return true
}

func (q *twin) Pop() (v int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.values) == 0 {
		return 0, false
	}
	v = q.values[0]
	q.values = q.values[1:]
	return v, true
}

// FuzzRing drives the ring and its twin with the same operations, one after the
// other: every answer must be the same.
func FuzzRing(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 1})
	f.Add([]byte{200, 7, 200, 7, 150, 3, 1, 1, 2, 200, 4, 0, 7})
	f.Fuzz(func(t *testing.T, ops []byte) {
		r, q := &Ring[int]{}, &twin{}
		next := 0
		push := func(limit int) {
			next++
			if got, want := r.Push(next, limit), q.Push(next, limit); got != want {
				t.Fatalf("push %d with limit %d: %v, want %v", next, limit, got, want)
			}
		}
		pop := func() {
			got := 0
			ok := r.Pop(&got)
			want, wantOK := q.Pop()
			if got != want || ok != wantOK {
				t.Fatalf("popped %d, %v; want %d, %v", got, ok, want, wantOK)
			}
		}
		for i, op := range ops {
			switch op % 8 {
			case 0, 1:
				push(1000)
			case 2:
				push(int(op) / 8)
			case 3, 4:
				pop()
			case 5: // many
				for range op {
					push(1000)
				}
			case 6:
				for range op {
					pop()
				}
			case 7:
				if i%16 == 15 {
					r.Close()
					q.closed = true
				}
				r.Shrink()
			}
			if r.Len() != len(q.values) || r.Pushed()-r.Popped() != uint64(len(q.values)) {
				t.Fatalf("length %d (%d pushed, %d popped), want %d", r.Len(), r.Pushed(), r.Popped(), len(q.values))
			}
		}
	})
}

func TestAShortRingIsSmallWhateverItsLimit(t *testing.T) {
	r := &Ring[int]{}
	for i := range 100_000 { // many pass, few are there at once
		if !r.Push(i, 100_000) {
			t.Fatal("full")
		}
		if v := 0; !r.Pop(&v) || v != i {
			t.Fatalf("popped %d; want %d", v, i)
		}
	}
	if n := len(r.tail.Load().slots); n != first {
		t.Fatalf("%d slots for a queue of one", n)
	}
	for i := range 5000 {
		r.Push(i, 100_000)
	}
	if n := len(r.tail.Load().slots); n > 8192 {
		t.Fatalf("%d slots for a queue of 5000", n)
	}
	r.Shrink()
	for range 5000 {
		r.Pop(new(int))
	}
	r.Shrink()
	if tail, head := r.tail.Load(), r.head.Load(); tail != head || len(tail.slots) != first {
		t.Fatalf("%d slots after it was empty, old segment kept: %v", len(tail.slots), tail != head)
	}
}

// interval is when an operation ran, on a clock that only counts.
type interval struct{ began, ended int64 }

// TestEveryHistoryHasAnOrder runs producers and consumers at once and checks
// what any order of the operations must satisfy: no value is lost or seen twice,
// the limit holds, and of two values of which one was pushed before the other's
// Push began, the later one is not popped before the other's Pop begins. A Pop
// finds nothing only if no value was there all the time, or a push was under way.
func TestEveryHistoryHasAnOrder(t *testing.T) {
	const rounds, producers, consumers, each, limit = 12, 4, 3, 50, 100
	for range rounds {
		r := &Ring[int]{}
		const n = producers * each
		var clock, left atomic.Int64
		left.Store(n)
		pushes, pops := make([]interval, n), make([]interval, n)
		seen := make([]atomic.Int32, n)
		var empty [consumers][]interval
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() {
				for i := p * each; i < (p+1)*each; i++ {
					for {
						began := clock.Add(1)
						if r.Push(i, limit) {
							pushes[i] = interval{began, clock.Add(1)}
							break
						}
					}
					if n := r.Len(); n < 0 || n > limit {
						t.Errorf("length %d with a limit of %d", n, limit)
					}
				}
			})
		}
		for c := range consumers {
			wg.Go(func() {
				for left.Load() > 0 {
					began := clock.Add(1)
					var v int
					ok := r.Pop(&v)
					ended := clock.Add(1)
					if !ok {
						empty[c] = append(empty[c], interval{began, ended})
						continue
					}
					pops[v] = interval{began, ended}
					seen[v].Add(1)
					left.Add(-1)
				}
			})
		}
		wg.Wait()
		for v := range seen {
			if k := seen[v].Load(); k != 1 {
				t.Fatalf("value %d was popped %d times", v, k)
			}
		}
		for a := range n {
			for b := range n {
				if pushes[a].ended < pushes[b].began && pops[b].ended < pops[a].began {
					t.Fatalf("%d was pushed before %d, and popped after it", a, b)
				}
			}
		}
		for _, e := range slices.Concat(empty[:]...) {
			pushing := slices.ContainsFunc(pushes, func(p interval) bool { return p.began < e.ended && p.ended > e.began })
			for v := range n {
				if !pushing && pushes[v].ended < e.began && pops[v].began > e.ended {
					t.Fatalf("a pop found nothing although %d was there", v)
				}
			}
		}
	}
}

func TestNothingIsLostWhileTheRingGrowsShrinksAndCloses(t *testing.T) {
	const producers, each = 8, 1000
	r := &Ring[int]{}
	var accepted, popped, sum atomic.Int64
	var wg, consuming sync.WaitGroup
	done := make(chan struct{})
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				if v := p*each + i + 1; r.Push(v, 1<<20) {
					accepted.Add(1)
					sum.Add(int64(v))
				}
				if i%100 == 99 {
					r.Shrink()
				}
				if p == 0 && i == each*3/4 {
					r.Close()
				}
			}
		})
	}
	for range 2 {
		consuming.Go(func() {
			for last := false; ; {
				var v int
				ok := r.Pop(&v)
				switch {
				case ok:
					popped.Add(1)
					sum.Add(-int64(v))
				case last:
					return
				default:
					select {
					case <-done:
						last = true
					default:
					}
				}
			}
		})
	}
	wg.Wait()
	close(done)
	consuming.Wait()
	if accepted.Load() != popped.Load() || sum.Load() != 0 || r.Len() != 0 || r.Pushed() != uint64(accepted.Load()) {
		t.Fatalf("%d accepted, %d popped, rest %d, length %d", accepted.Load(), popped.Load(), sum.Load(), r.Len())
	}
	if r.Push(1, 10) {
		t.Fatal("pushed into a closed ring")
	}
}

func BenchmarkPushAndPop(b *testing.B) {
	b.Run("ring", func(b *testing.B) {
		r := &Ring[[5]int]{}
		var v [5]int
		for b.Loop() {
			r.Push(v, 64)
			r.Pop(&v)
		}
	})
	b.Run("channel", func(b *testing.B) {
		c := make(chan [5]int, 64)
		for b.Loop() {
			c <- [5]int{}
			<-c
		}
	})
}

// Values that are set aside keep their places at every moment. They used to be
// counted elsewhere, after they were popped: a Push between the two found room.
func TestWhatIsSetAsideKeepsItsPlace(t *testing.T) {
	for range 300 {
		const limit = 8
		r := &Ring[int]{}
		var accepted atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 20 {
					if r.Push(i, limit) {
						accepted.Add(1)
					}
				}
			})
		}
		aside := 0
		wg.Go(func() {
			for range 40 {
				if r.SetAside(new(int)) {
					aside++
				}
			}
		})
		wg.Wait()
		for r.Push(0, limit) { // what was refused a moment early
			accepted.Add(1)
		}
		if accepted.Load() != limit || r.Held() != limit || r.Len() != limit-aside || !r.Full(limit) {
			t.Fatalf("%d accepted, %d held, %d of them aside; want %d", accepted.Load(), r.Held(), aside, limit)
		}
		r.Release(aside)
		if r.Held() != limit-aside || r.Push(0, limit) != (aside > 0) {
			t.Fatalf("%d held after %d places were given back", r.Held(), aside)
		}
	}
}

// Nothing is pushed by an old limit once there is a new era, whoever was about to.
func TestANewEraStopsWhoPushesByAnOldLimit(t *testing.T) {
	for range 20 {
		r := &Ring[int]{}
		old := r.Era()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := 0; r.PushIn(old, i, 1<<20); i++ {
				}
			})
		}
		for r.Len() < 100 {
			runtime.Gosched()
		}
		r.NewEra()
		n := r.Len()
		wg.Wait()
		if r.Len() != n || !r.Push(0, n+1) || r.Push(0, n+1) {
			t.Fatalf("%d values at the end of an era, %d later", n, r.Len())
		}
		for range n + 1 {
			if !r.Pop(new(int)) {
				t.Fatalf("a value got lost, %d are left", r.Len())
			}
		}
	}
}
