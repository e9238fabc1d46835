package patientapi

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"
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

func TestObservationsAreMadeAtVisits(t *testing.T) {
	young, old := 0, 0
	for n := 1; n <= population; n++ {
		p := generated(5, n)
		days := []string{}
		for _, v := range p.Visits {
			days = append(days, v.Date)
		}
		all := Generator{5}.Observations(n)
		if years := age(t, p.BirthDate, Today); years < 30 {
			young += len(all)
		} else if years >= 70 {
			old += len(all)
		}
		last := time.Time{}
		for i, o := range all {
			if o.Patient != p.ID || o.Number != i+1 {
				t.Errorf("observation %d of patient %d says it is %d of %s", i+1, n, o.Number, o.Patient)
			}
			if !slices.Contains(days, o.Time.Format(time.DateOnly)) || o.Time.Before(last) {
				t.Errorf("patient %d was measured at %v, with visits on %v", n, o.Time, days)
			}
			last = o.Time
			if o.Version < 1 || o.Updated.Before(o.Time) || o.Updated.After(p.Updated) || (o.Version == 1) != o.Updated.Equal(o.Time) {
				t.Errorf("an observation of patient %d, of %v, has version %d of %v; the patient was changed at %v", n, o.Time, o.Version, o.Updated, p.Updated)
			}
		}
	}
	if young == 0 || old < young {
		t.Errorf("%d observations of the young, %d of the old", young, old)
	}
}
