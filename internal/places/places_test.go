package places

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

func TestTheScaleOfADeadline(t *testing.T) {
	for left, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 1: 0, 70 * time.Millisecond: 0, 250 * time.Millisecond: 2, 800 * time.Millisecond: 4, time.Second: 4,
		1400 * time.Millisecond: 4, 2 * time.Second: 5, 20 * time.Minute: 14, never - 1: 14, never: 15,
	} {
		if got := Scale(left); got != want {
			t.Errorf("%v is of scale %d, want %d", left, got, want)
		}
	}
}

func TestAKeySaysWhatItWasMadeOf(t *testing.T) {
	table := New()
	for _, name := range []string{"", "GET /orders/{id}", "a"} {
		for level := range Levels {
			for scale := range Scales {
				k := table.Name(name).Key(level, scale)
				if k.Level() != level || k.Scale() != scale || k.Named() != (name != "") || k.Unnamed() != Name(0).Key(level, scale) {
					t.Fatalf("%q, %d, %d: %x", name, level, scale, uint64(k))
				}
			}
		}
	}
}

// twin is a slow table: it keeps all its state in maps, and looks at every entry.
type twin struct {
	place   map[Key]int // of kinds with a place
	shares  map[Key]*use
	waiting [mostRest]Key // known kinds without a place; 0: none
	next    int
	arrived float64
}

func newTwin() *twin { return &twin{place: map[Key]int{}, shares: map[Key]*use{}} }

// derived returns the derived kinds with a place: of one level, and of all levels.
func (w *twin) derived(level int) (of, all []Key, levels map[int]bool) {
	levels = map[int]bool{}
	for k := range w.place {
		if k.Named() {
			continue
		}
		all, levels[k.Level()] = append(all, k), true
		if k.Level() == level {
			of = append(of, k)
		}
	}
	return of, all, levels
}

func (w *twin) room(level int) bool {
	_, _, levels := w.derived(level)
	return len(w.place)+Levels-len(levels) < limit.Classes
}

func (w *twin) give(k Key) int {
	w.place[k] = len(w.place)
	w.shares[k] = &use{}
	return w.place[k]
}

func (w *twin) find(k Key, n float64) int {
	w.arrived += n
	if k.Named() {
		name := k - k%Scales
		if _, known := w.shares[name]; !known {
			if w.room(k.Level()) {
				w.give(name)
			} else {
				w.wait(name)
			}
		}
		w.shares[name].fresh += n
		if at, ok := w.place[name]; ok {
			return at
		}
	}
	k = k.Unnamed()
	if at, ok := w.place[k]; ok {
		return at
	}
	of, all, _ := w.derived(k.Level())
	if len(of) == 0 || w.room(k.Level()) && len(all) < mostDerived {
		return w.give(k)
	}
	last := 0
	for _, other := range of {
		last = max(last, w.place[other])
	}
	return last
}

func (w *twin) seen(i int) float64 {
	u := w.shares[w.waiting[i]]
	if u == nil {
		return 0
	}
	return u.share*Span + u.fresh
}

func (w *twin) wait(name Key) {
	turns, to := []int{}, -1
	for i := range mostRest {
		turns = append(turns, (w.next+i)%mostRest)
	}
	if i := slices.IndexFunc(turns, func(i int) bool { return w.seen(i) <= 1 }); i >= 0 {
		turns = turns[:i+1]
	}
	for _, i := range turns {
		if to < 0 || w.seen(i) < w.seen(to) {
			to = i
		}
	}
	delete(w.shares, w.waiting[to])
	w.waiting[to], w.shares[name] = name, &use{}
	w.next = (to + 1) % mostRest
}

func (w *twin) renew(busy uint32) (changed uint32) {
	if w.arrived == 0 {
		return 0
	}
	weight := 1 - math.Pow(1-1/Span, w.arrived)
	for _, u := range w.shares {
		u.share += weight * (u.fresh/w.arrived - u.share)
		u.fresh = 0
	}
	w.arrived = 0
	for range mostRest {
		var lowest, best Key
		for k, at := range w.place {
			if k.Named() && busy&(1<<at) == 0 && (lowest == 0 || w.shares[k].share < w.shares[lowest].share || w.shares[k].share == w.shares[lowest].share && at < w.place[lowest]) {
				lowest = k
			}
		}
		where := 0
		for i, k := range w.waiting {
			if k != 0 && (best == 0 || w.shares[k].share > w.shares[best].share) {
				best, where = k, i
			}
		}
		if lowest == 0 || best == 0 || w.shares[best].share < Rare || w.shares[best].share < clearly*w.shares[lowest].share {
			break
		}
		changed |= 1 << w.place[lowest]
		w.place[best], w.waiting[where] = w.place[lowest], lowest
		delete(w.place, lowest)
	}
	return changed
}

// play applies steps to a table and to its twin, and returns where they differ.
func play(steps []byte) error {
	table, slow := New(), newTwin()
	for i := 0; i+1 < len(steps); i += 2 {
		if a, b := steps[i], steps[i+1]; a < 8 {
			busy := uint32(a) * uint32(b) * 0x9e3779b1
			if got, want := table.Renew(busy), slow.renew(busy); got != want {
				return fmt.Errorf("step %d: the places %b have changed, want %b", i/2, got, want)
			} else if got&busy != 0 {
				return fmt.Errorf("step %d: of the busy places %b some have changed: %b", i/2, busy, got)
			}
		} else {
			name := "" // otherwise one of two hundred names, some of which are frequent
			if b < 200 {
				name = strconv.Itoa(int(b) * int(b) / 200)
			}
			k, n := table.Name(name).Key(int(a)%Levels, int(a/4)%Scales), float64(1+b%3*10)
			if got, want := table.Find(k, n), slow.find(k, n); int(got) != want {
				return fmt.Errorf("step %d: %q of level %d and scale %d is in place %d, want %d", i/2, name, k.Level(), k.Scale(), got, want)
			}
		}
		if len(table.places) > limit.Classes {
			return fmt.Errorf("step %d: %d places", i/2, len(table.places))
		}
	}
	return nil
}

func TestATableDoesWhatItsTwinDoes(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		steps := make([]byte, 4000)
		few := 1 + r.IntN(200)
		for i := range steps {
			steps[i] = byte(r.IntN(256))
			if i%2 == 1 && r.IntN(3) > 0 {
				steps[i] = byte(r.IntN(few))
			}
		}
		if err := play(steps); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("the quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		if err := play(steps[:min(len(steps), 20_000)]); err != nil {
			t.Error(err)
		}
	})
}

// crowd returns a table with busy kinds, and a function that lets more of their work arrive.
func crowd(kinds int) (table *Table, busy func(but ...int) (places []uint8)) {
	made := New()
	table = &made
	keys := make([]Key, kinds)
	for i := range keys {
		keys[i] = table.Name(fmt.Sprint("GET /busy/", i)).Key(1, 8)
	}
	busy = func(but ...int) (at []uint8) {
		for i, k := range keys {
			if !slices.Contains(but, i) {
				at = append(at, table.Find(k, 1))
			}
		}
		return at
	}
	for range 100 {
		busy()
	}
	table.Renew(0)
	return table, busy
}

// madeUp returns a name that was not used before.
func madeUp(i int) Name { return Name(uint64(i)*0x9e3779b97f4a7c15%toldBit | toldBit) }

func TestAMillionNamesPushNoBusyKindOut(t *testing.T) {
	table, busy := crowd(10)
	before := busy()
	for i := range 1_000_000 {
		table.Find(madeUp(i).Key(1, 8), 1)
		if i%100 == 0 {
			if now := busy(); !slices.Equal(now, before) {
				t.Fatalf("after %d names the busy kinds are in the places %v, and were in %v", i, now, before)
			}
			table.Renew(0)
		}
	}
	if len(table.places) > limit.Classes || len(table.rest) > mostRest {
		t.Errorf("%d places, and %d kinds wait for one", len(table.places), len(table.rest))
	}
}

func TestAllocsOfAMillionNames(t *testing.T) {
	table, _ := crowd(30)
	i := 0
	if n := testing.AllocsPerRun(10_000, func() {
		i++
		table.Find(madeUp(i).Key(1, 8), 1)
		if i%100 == 0 {
			table.Renew(0)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a name that was never seen", n)
	}
}

func TestWorkThatSaysNothingAlwaysHasAPlaceOfItsLevel(t *testing.T) {
	table, _ := crowd(1000)
	for level := range Levels {
		at := table.Find(Name(0).Key(level, 3), 1)
		if k := table.Key(at); k.Named() || k.Level() != level {
			t.Errorf("level %d is in the place of %x", level, uint64(k))
		}
	}
}

func BenchmarkFind(b *testing.B) {
	table, _ := crowd(limit.Classes - Levels)
	for i := 0; b.Loop(); i++ {
		table.Find(madeUp(i).Key(1, 8), 1)
		table.Find(table.Name("GET /busy/1").Key(1, 8), 1)
	}
}
