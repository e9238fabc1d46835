package patientapi

import (
	"fmt"
	"hash/fnv"
	"math"
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

func TestObservedValuesFitTheAge(t *testing.T) {
	type bounds struct{ lowest, highest, adultLowest, adultHighest float64 }
	plausible := map[string]bounds{
		"8867-4":  {55, 170, 50, 95},
		"8480-6":  {60, 165, 90, 170},
		"8462-4":  {35, 100, 55, 105},
		"29463-7": {2.5, 85, 45, 100},
		"8302-2":  {45, 182, 150, 185},
		"8310-5":  {35.5, 38.5, 35.5, 38.5},
		"2339-0":  {55, 125, 70, 130},
		"59408-5": {94, 100, 94, 100},
	}
	seen := map[string]int{}
	for n := 1; n <= population; n++ {
		birth := generated(5, n).BirthDate
		pressure := map[time.Time]float64{}
		for _, o := range (Generator{5}).Observations(n) {
			seen[o.Code]++
			b, years := plausible[o.Code], age(t, birth, o.Time.Format(time.DateOnly))
			low, high := b.lowest, b.highest
			if years >= 18 {
				low, high = b.adultLowest, b.adultHighest
			}
			if o.Value < low || o.Value > high {
				t.Errorf("%s of %v %s at %d years, want %v to %v", o.Text, o.Value, o.Unit, years, low, high)
			}
			if math.Abs(o.Value*10-math.Round(o.Value*10)) > 1e-9 {
				t.Errorf("%s of %v is no tenth", o.Text, o.Value)
			}
			switch o.Code {
			case "8480-6":
				pressure[o.Time] = o.Value
			case "8462-4":
				if systolic := pressure[o.Time]; systolic < o.Value+5 {
					t.Errorf("blood pressure of %v over %v", systolic, o.Value)
				}
			}
		}
	}
	for code := range plausible {
		if seen[code] < population/20 {
			t.Errorf("%s was measured %d times", code, seen[code])
		}
	}
	if len(seen) != len(plausible) {
		t.Errorf("measured: %v", seen)
	}
}

func TestChildrenGrow(t *testing.T) {
	for _, k := range kits {
		for _, m := range k.measures {
			if m.code != "8302-2" {
				continue
			}
			last := m.value(0, 0, 0)
			for days := range 18 * 365 {
				height := m.value(days, 0, 0)
				if height < last || height > last+0.3 {
					t.Fatalf("from %v to %v cm in a day, at %d days", last, height, days)
				}
				last = height
			}
		}
	}
}
