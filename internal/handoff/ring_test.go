package handoff

import (
	"slices"
	"testing"
)

// FuzzRing compares a ring with a slice.
func FuzzRing(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 130, 2, 0, 255, 1, 1})
	for _, most := range []int{70, 300} {
		var long []byte // grows, with holes and without
		for i := range most {
			long = append(long, 0, 0, byte(2+i%200))
		}
		f.Add(long)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		type job struct {
			seq   uint64
			value int
		}
		var r ring[int]
		var twin []job
		for i, op := range ops {
			switch {
			case op == 0:
				twin = append(twin, job{r.push(&i), i})
			case op == 1 && len(twin) > 0:
				var got int
				if r.pop(&got); got != twin[0].value {
					t.Fatalf("op %d: %d, want %d", i, got, twin[0].value)
				}
				twin = twin[1:]
			case op == 255:
				odd := func(v *int) bool { return *v%2 == 1 }
				var want []int
				for _, j := range twin {
					if odd(&j.value) {
						want = append(want, j.value)
					}
				}
				twin = slices.DeleteFunc(twin, func(j job) bool { return odd(&j.value) })
				if got := r.purge(odd); !slices.Equal(got, want) {
					t.Fatalf("op %d: purged %v, want %v", i, got, want)
				}
			case op > 1: // a present, a past or a future job
				seq := uint64(op)
				at := slices.IndexFunc(twin, func(j job) bool { return j.seq == seq })
				if got := r.remove(seq); got != (at >= 0) {
					t.Fatalf("op %d: remove %d says %v", i, seq, got)
				}
				if at >= 0 {
					twin = slices.Delete(twin, at, at+1)
				}
			}
			if r.len() != len(twin) {
				t.Fatalf("op %d: %d jobs, want %d", i, r.len(), len(twin))
			}
			if len(r.slots) > firstSlots && len(r.slots) > 4*len(ops) {
				t.Fatalf("op %d: %d slots", i, len(r.slots))
			}
		}
	})
}

// Jobs that come and leave while one job waits take no memory.
func TestHolesAreUsedAgain(t *testing.T) {
	var r ring[int]
	v := 1
	r.push(&v)
	for range 100 * firstSlots {
		if !r.remove(r.push(&v)) {
			t.Fatal("the latest job is not there")
		}
	}
	if len(r.slots) != firstSlots || r.len() != 1 {
		t.Fatalf("%d slots for %d job", len(r.slots), r.len())
	}
}
