package patientapi

import (
	"fmt"
	"hash/fnv"
	"testing"
)

func TestObservationsArePinned(t *testing.T) {
	h := fnv.New64a()
	for n := 1; n <= 1000; n++ {
		for _, o := range (Generator{1}).Observations(n) {
			fmt.Fprintln(h, text(o))
		}
	}
	if got, want := fmt.Sprintf("%016x", h.Sum64()), "22540a04813a486f"; got != want {
		t.Errorf("the observations have digest %s, want %s", got, want)
	}
}
