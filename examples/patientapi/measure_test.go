package patientapi

import (
	"fmt"
	"hash/fnv"
	"testing"
)

func TestObservationsArePinned(t *testing.T) {
	for _, c := range []struct {
		seed   uint64
		people int
		want   string
	}{{1, 1000, "22540a04813a486f"}, {5, 4000, "07029bdffe7dc637"}} { // some of the many were measured when they were born
		h := fnv.New64a()
		for n := 1; n <= c.people; n++ {
			for _, o := range (Generator{c.seed}).Observations(n) {
				fmt.Fprintln(h, text(o))
			}
		}
		if got := fmt.Sprintf("%016x", h.Sum64()); got != c.want {
			t.Errorf("the observations of seed %d have digest %s, want %s", c.seed, got, c.want)
		}
	}
}
