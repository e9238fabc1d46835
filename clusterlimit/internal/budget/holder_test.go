package budget

import (
	"fmt"
	"testing"
	"time"
)

// renew is one successful attempt without delays.
func renew(h *Holder, s State, now time.Duration, wants, inUse int) State {
	h.Begin(now)
	h.Aim(now, s, Amounts{wants})
	s = h.Renew(now, Amounts{inUse})
	h.Confirm()
	return s
}

func holder(id string, keep bool) *Holder {
	return NewHolder(Terms{ID: id, Totals: Amounts{total}, TTL: simTTL, Fade: 4 * simTTL, Keep: keep})
}

// The clock of the waiting replica is nearly a quarter faster, and the replica checks the lease all
// the time.
func TestALeaseIsOverBeforeAFasterClockTakesIt(t *testing.T) {
	const step = time.Millisecond
	for _, faster := range []float64{.9, 1, 1.24} {
		slow, fast := holder("a", false), holder("b", false)
		s := renew(slow, State{}, 0, 9, 0)
		taken := time.Duration(0)
		for now := step; taken == 0; now += step {
			clock := time.Duration(float64(now) * faster)
			if s = renew(fast, s, clock, 1, 0); s.Of("a").Token == 0 {
				taken = now
			}
		}
		if b := slow.Bound(taken); b.Standing != Over {
			t.Errorf("%v times as fast: taken after %v, while it is %v", faster, taken, b.Standing)
		}
		if most := simTTL * 5 / 4; float64(taken)*faster > float64(most+10*step) {
			t.Errorf("%v times as fast: taken only after %v", faster, taken)
		}
	}
}

// Amounts in use are kept. When their work ends they are given back and not used for other work.
func TestWhatIsGivenBackIsNotUsedAgain(t *testing.T) {
	a, b := holder("a", false), holder("b", false)
	s := renew(a, State{}, 0, 40, 0)
	s = renew(b, s, 1, 40, 0)
	for i, inUse := range []int{40, 33, 24, 20} {
		now := time.Duration(i) * simEvery
		s = renew(a, s, now, 40, inUse)
		if may, has := a.Bound(now).Amounts[Slots], s.Of("a").Has[Slots]; may != 20 || has != inUse {
			t.Errorf("%d in use: it may use %d and has %d", inUse, may, has)
		}
		s = renew(b, s, now, 40, 0)
		if has := s.Of("b").Has[Slots]; has != total-inUse {
			t.Errorf("%d in use: the other has %d", inUse, has)
		}
	}
}

// The first replica to come back after an outage finds leases that no replica could renew.
func TestNobodyIsExpiredForAnOutage(t *testing.T) {
	a, b := holder("a", true), holder("b", true)
	s := renew(b, renew(a, State{}, 0, 1, 0), 0, 1, 0)
	s = renew(a, s, simEvery, 1, 0)
	back := 20 * simTTL
	for now := simTTL; now < back; now += simEvery {
		a.Begin(now)
		a.Fail()
	}
	s = renew(a, s, back, 1, 0)
	if s.Of("b").Token == 0 {
		t.Fatal("expired at once")
	}
	if s = renew(a, s, back+simTTL*5/4, 1, 0); s.Of("b").Token != 0 {
		t.Error("not expired after its time")
	}
}

// A store that has lost the budget gets the totals and the tokens that members know.
func TestALostBudgetIsMadeAnew(t *testing.T) {
	a := holder("a", false)
	s := State{}
	for i := range 5 {
		s = renew(a, s, time.Duration(i), 1, 0)
	}
	token := a.Token()
	other := NewHolder(Terms{ID: "b", TTL: simTTL})
	s = renew(a, renew(other, State{}, 6, 1, 0), 7, 1, 0)
	if s.Totals[Slots] != total || a.Token() <= token || s.Of("a").Has[Slots] == 0 {
		t.Errorf("%+v, token %d after %d", s, a.Token(), token)
	}
}

// While the store is away from all replicas, kept leases stay below the total, and become equal
// shares.
func TestKeptLeasesBecomeEqualSharesAndStayBelowTheTotal(t *testing.T) {
	var s State
	var all []*Holder
	for i, wants := range []int{60, 5, 0, 20} {
		all = append(all, NewHolder(Terms{ID: string(rune('a' + i)), Totals: Amounts{total}, TTL: simTTL, Fade: 4 * simTTL, Keep: true}))
		_ = wants
	}
	now := time.Duration(0)
	for range 4 {
		for i, h := range all {
			now += 30 * time.Millisecond
			h.Begin(now)
			h.Aim(now, s, Amounts{[]int{60, 5, 0, 20}[i]})
			s = h.Renew(now, Amounts{})
			h.Confirm()
		}
	}
	first := all[0].Bound(now).Amounts[Slots]
	for end := now + 20*simTTL; now < end; now += simEvery {
		sum := 0
		for _, h := range all {
			h.Begin(now)
			h.Fail()
			sum += h.Bound(now + simLimit).Amounts[Slots]
		}
		if sum > total {
			t.Fatalf("%v: %d", now, sum)
		}
	}
	for i, h := range all {
		if b := h.Bound(now); b.Standing != Kept || b.Amounts[Slots] != total/4 {
			t.Errorf("%d is %v with %d, want %d", i, b.Standing, b.Amounts[Slots], total/4)
		}
	}
	if first <= total/4 {
		t.Errorf("demand gave the first only %d", first)
	}
}

// A process that was paused for longer than its lease wakes up during an attempt. It admits nothing
// until it has asked again.
func TestAPausedHolderAdmitsNothingBeforeItHasAsked(t *testing.T) {
	h := NewHolder(Terms{ID: "a", Totals: Amounts{total}, TTL: simTTL, Fade: 4 * simTTL, Keep: true})
	h.Begin(0)
	h.Aim(0, State{}, Amounts{})
	s := h.Renew(0, Amounts{})
	h.Confirm()
	h.Begin(simEvery)
	now := 10 * simTTL // a pause in the middle of the attempt
	h.Fail()
	if b := h.Bound(now); b.Standing != Over || b.Amounts[Slots] != 0 {
		t.Errorf("%+v", b)
	}
	h.Begin(now)
	h.Fail()
	if b := h.Bound(now); b.Standing != Kept {
		t.Errorf("the store is away: %+v", b)
	}
	h.Begin(now)
	h.Aim(now, s.Leave("a"), Amounts{})
	if b := h.Bound(now); b.Amounts[Slots] != 0 {
		t.Errorf("what others took: %+v", b)
	}
}

// The cost of one try of a renewal for a process, in a budget with a thousand members.
func BenchmarkATryOfAThousand(b *testing.B) {
	s := State{}.Share(Amounts{5000, 100_000}).Split()
	for i := range MostMembers {
		s = s.Renew(Terms{ID: fmt.Sprintf("%012d", i), TTL: 3 * time.Second}, Amounts{5, 100}, Amounts{})
	}
	text := s.Encode()
	h := NewHolder(Terms{ID: fmt.Sprintf("%012d", 7), TTL: 3 * time.Second})
	for b.Loop() {
		read, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		h.Aim(0, read, Amounts{5, 100})
		h.Renew(0, Amounts{5}).Encode()
	}
	b.ReportMetric(float64(len(text)), "B/value")
}
