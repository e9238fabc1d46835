package budget

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// divided is divide in exact fractions, which hands out the remainder unit by unit.
func divided(total int, weights []int) []int {
	parts, sum, lowest := make([]int, len(weights)), new(big.Rat), 0
	if total >= len(weights) {
		lowest = 1
	}
	rest := total - lowest*len(weights)
	for _, w := range weights {
		sum.Add(sum, big.NewRat(int64(w), 1))
	}
	given := 0
	exact := make([]*big.Rat, len(weights))
	for i, w := range weights {
		exact[i] = new(big.Rat).Quo(new(big.Rat).Mul(big.NewRat(int64(rest), 1), big.NewRat(int64(w), 1)), sum)
		parts[i] = int(new(big.Int).Quo(exact[i].Num(), exact[i].Denom()).Int64())
		given += parts[i]
	}
	owed := make([]bool, len(weights))
	for ; given < rest; given++ {
		best := -1
		for i := range weights {
			left := func(i int) *big.Rat { return new(big.Rat).Sub(exact[i], big.NewRat(int64(parts[i]), 1)) }
			if !owed[i] && (best < 0 || left(i).Cmp(left(best)) > 0) {
				best = i
			}
		}
		parts[best]++
		owed[best] = true
	}
	for i := range parts {
		parts[i] += lowest
	}
	return parts
}

// twin is a simple model of the state: what each replica has and wants.
type twin struct {
	totals     Amounts
	has, wants map[string]Amounts
}

func (w *twin) sum(kind int) (n int) {
	for _, a := range w.has {
		n += a[kind]
	}
	return n
}

func (w *twin) renew(id string, wants, inUse Amounts, epoch uint64) {
	has := w.has[id]
	w.wants[id], w.has[id] = wants, has
	ids := make([]string, 0, len(w.has))
	for other := range w.has {
		ids = append(ids, other)
	}
	slices.Sort(ids)
	for kind, total := range w.totals {
		share := w.share(ids, id, kind, epoch)
		over := w.sum(kind) > total
		switch {
		case share > has[kind]: // unit by unit, while there are free units
			for has[kind] < share && w.sum(kind) < total {
				has[kind]++
				w.has[id] = has
			}
		case over || has[kind]-share >= max(1, has[kind]/8):
			for has[kind] > share && has[kind] > inUse[kind] {
				has[kind]--
			}
		}
		w.has[id] = has
	}
}

// share is a replica's share as if nothing were in use.
func (w *twin) share(ids []string, id string, kind int, epoch uint64) int {
	total := w.totals[kind]
	among := ids
	if total < len(ids) {
		wanting := slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return w.wants[other][kind] == 0 })
		switch {
		case len(wanting) > total: // turns of 6 s, which are 36 renewals each at six renewals a second
			var turn []string
			for at := uint64(0); len(turn) < total; at++ {
				next := ids[(epoch/uint64(36*len(ids))*uint64(total)+at)%uint64(len(ids))]
				if slices.Contains(wanting, next) {
					turn = append(turn, next)
				}
			}
			if slices.Contains(turn, id) {
				return 1
			}
			return 0
		case len(wanting) > 0:
			among = wanting
		}
	}
	var weights []int
	for _, other := range among {
		weights = append(weights, w.wants[other][kind]+max(1, total/(8*len(ids))))
	}
	if !slices.Contains(among, id) {
		return 0
	}
	return divided(total, weights)[slices.Index(among, id)]
}

// Any sequence of joins, renewals, returns, expiries and changes of the totals leads to the state
// of the slow twin, and never grants more than the total.
func FuzzTheStateIsItsTwins(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		amounts := func() Amounts { return Amounts{r.IntN(40) * r.IntN(2), r.IntN(2000) * r.IntN(2)} }
		most := 1 + r.IntN(60) // often fewer than leases
		totals := Amounts{1 + r.IntN(most), r.IntN(1000)}
		s, w := State{}.Share(totals), twin{totals, map[string]Amounts{}, map[string]Amounts{}}
		w.totals = s.Totals
		for range 200 {
			id := string(rune('a' + r.IntN(6)))
			before := s
			switch r.IntN(12) {
			case 0:
				s = s.Leave(id)
				delete(w.has, id)
				delete(w.wants, id)
			case 1:
				beat := s.Of(id).Beat
				if r.IntN(2) == 0 {
					beat++ // it was renewed meanwhile
				} else {
					delete(w.has, id)
					delete(w.wants, id)
				}
				s = s.Expire(id, beat)
			case 2:
				totals = Amounts{1 + r.IntN(most), 1 + r.IntN(most)}
				s = s.Share(totals)
				w.totals = s.Totals
			default:
				wants, inUse := amounts(), amounts()
				s = s.Renew(Terms{ID: id, TTL: time.Second}, wants, inUse)
				w.renew(id, wants, inUse, s.Epoch)
			}
			check(t, before, s, w)
		}
	})
}

func check(t *testing.T, before, s State, w twin) {
	t.Helper()
	if len(s.Leases) != len(w.has) {
		t.Fatalf("%d leases, %d of the twin's", len(s.Leases), len(w.has))
	}
	for kind := range Kinds {
		if s.Free(kind) < 0 && s.Free(kind) < before.Free(kind) && s.Totals == before.Totals {
			t.Fatalf("kind %d: more was granted than there is: %+v", kind, s)
		}
	}
	for _, l := range s.Leases {
		if l.Has != w.has[l.ID] {
			t.Fatalf("%s has %v, the twin's %v: %+v", l.ID, l.Has, w.has[l.ID], s)
		}
		if old := before.Of(l.ID); old.Token != 0 && (l.Token != old.Token || l.Beat < old.Beat) || l.Token > l.Beat || l.Beat > s.Epoch {
			t.Fatalf("tokens: %+v was %+v in epoch %d", l, old, s.Epoch)
		}
	}
	again, err := Parse(s.Encode())
	if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
		t.Fatalf("%v, %s", err, s.Encode())
	}
}

func FuzzDivideIsItsTwins(f *testing.F) {
	f.Add(100, []byte{1, 2, 3})
	f.Add(2, []byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, total int, of []byte) {
		if len(of) == 0 || len(of) > 50 || total < 0 || total > Most {
			t.Skip()
		}
		weights := make([]int, len(of))
		for i, w := range of {
			weights[i] = 1 + int(w)*int(w)*(Most>>16)
		}
		total = min(total, 1<<20) + total%7
		if got, want := divide(total, weights, slices.Repeat([]int{1}, len(of))), divided(total, weights); !slices.Equal(got, want) {
			t.Errorf("%d by %v: %v, want %v", total, weights, got, want)
		}
	})
}

// A newer version has added words. Every write of this version keeps them.
func TestWordsOfANewerVersionStay(t *testing.T) {
	s, err := Parse([]byte(format + " 3 10 0 0 0 0 0 aim=fair by=zone\na 1 0 1 4 0 1 1 zone=x\nb 2 1 1 1 0 1 1 zone=y"))
	if err != nil {
		t.Fatal(err)
	}
	s = s.Renew(Terms{ID: "c"}, Amounts{1, 1}, Amounts{}).Leave("a")
	if s, err = Parse(s.Encode()); err != nil {
		t.Fatal(err)
	}
	if text := string(s.Encode()); !strings.Contains(text, " aim=fair by=zone\n") || !strings.Contains(text, " zone=y\n") ||
		strings.Contains(text, "zone=x") || s.Of("b").Has != (Amounts{1}) || s.Of("c").Token == 0 {
		t.Errorf("after it was renewed: %s", text)
	}
}

// A lease without a token was never taken from its holder. A lease of a day kept a share for 30
// hours after its holder's death. The epoch after the last one made the value unreadable.
func TestLeasesThatWouldNeverEndAreNoState(t *testing.T) {
	lease := func(epoch, token uint64, ttl time.Duration) []byte {
		return fmt.Appendf(nil, "%s %d 10 0 0 0 0 0\na %d 0 %d 4 0 1 1", format, epoch, token, ttl/time.Millisecond)
	}
	if s, err := Parse(lease(3, 1, time.Hour)); err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	for what, text := range map[string][]byte{
		"no token":       lease(3, 0, time.Second),
		"a day":          lease(3, 1, 24*time.Hour),
		"the last epoch": lease(math.MaxUint64, 1, time.Second),
	} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

// On processors of 32 bits products overflowed: 40 members that wanted all of a billion had two each.
func TestLargeAmountsAreShared(t *testing.T) {
	s := State{}.Share(Amounts{0, 1e9})
	for i := range 4 * MostAlone {
		s = s.Renew(Terms{ID: string(rune('A' + i%MostAlone))}, Amounts{0, 1e9}, Amounts{})
	}
	for _, l := range s.Leases {
		if l.Has[Rate] != 1e9/MostAlone {
			t.Errorf("%s has %d", l.ID, l.Has[Rate])
		}
	}
	if _, o, _ := (State{}).Visit(FirstGroup, 1, s.Split()); o.Totals[Rate] != 1e9 {
		t.Errorf("%+v", o)
	}
}

// Parse rejects an invalid state, and the result of Parse is read as it was written, and can be used.
func FuzzParse(f *testing.F) {
	f.Add([]byte("3 1 2 3 4 5 1\na 3 1 3000 1 2 3 4\nb 3 1 3000 1 2 3 4 1 2 3 x=1"))
	f.Add([]byte("9 1 2 3 4 5 1 7\n"))
	f.Add([]byte("3 10 0 0 0 0 0 y= =\na 1 0 1 4 0 1 1"))
	f.Add([]byte("x y="))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(append([]byte(format+" "), text...))
		if err != nil {
			return
		}
		again, err := Parse(s.Encode())
		if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
			t.Errorf("%v: %s, then %s", err, s.Encode(), again.Encode())
		}
		s = s.Renew(Terms{ID: "me"}, Amounts{Most, Most}, Amounts{})
		if s.Of("me").Token == 0 {
			t.Errorf("no lease in %+v", s)
		}
		if _, err := Parse(s.Encode()); err != nil {
			t.Error(err)
		}
	})
}
