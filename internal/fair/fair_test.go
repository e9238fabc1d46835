package fair

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// admit enters work that starts at once.
func (s *Shares) admit(now time.Duration, caller uint64, limit int) (t Ticket, over bool) {
	t, over = s.Enter(now, caller, 1, limit)
	s.Start(now, &t)
	return t, over
}

func TestActiveCallersHaveEqualParts(t *testing.T) {
	var s Shares
	s.admit(0, 1, 10)
	overs := 0
	for range 9 { // its part of ten is five
		if _, over := s.admit(0, 2, 10); over {
			overs++
		}
	}
	if overs != 3 {
		t.Errorf("%d of 9 are over the share", overs)
	}
	if _, over := s.Enter(0, 1, 1, 10); over {
		t.Error("the other one, with two")
	}
}

// With more callers than slots an equal part is less than one piece of work. Each was
// over its share with its first, and none ever waited.
func TestOnePieceOfWorkIsNeverTooMuch(t *testing.T) {
	var s Shares
	for i := range uint64(3 * MaxCallers) {
		if work, over := s.admit(0, i<<20, 10); over && i < MaxCallers {
			t.Fatalf("caller %d", i)
		} else if i%7 == 0 {
			s.Leave(0, &work)
		}
	}
	if work, _ := s.admit(0, 0, 10); work.key != 0 {
		t.Errorf("a caller that is known has the key %d", work.key)
	}
	if _, over := s.Enter(0, 0, 1, 10); !over {
		t.Error("two, where there is less than one for each")
	}
}

// A caller that asks for one thing after the other is active between them, and is
// forgotten after a while.
func TestACallerStaysActiveForALull(t *testing.T) {
	var s Shares
	work, _ := s.admit(0, 1, 10)
	s.Leave(0, &work)
	for range 10 {
		s.admit(0, 2, 10)
	}
	if _, over := s.Enter(lull, 2, 1, 10); !over {
		t.Error("the other caller was forgotten at once")
	}
	if _, over := s.Enter(3*lull, 2, 1, 10); over || s.Active() != 1 {
		t.Errorf("over %v, %d active", over, s.Active())
	}
}

func TestLeavingTwiceOrUnknownDoesNothing(t *testing.T) {
	var s Shares
	s.Leave(0, &Ticket{})
	work, _ := s.admit(0, 1, 10)
	s.Leave(0, &work)
	s.Leave(0, &work)
	s.Start(0, &work)
	if s.all.held != 0 || s.waiting != 0 || s.waiters != 0 || s.of[1].running != 0 {
		t.Errorf("%+v, %d wait", s.all, s.waiting)
	}
}

func TestTheSameNameHasTheSameHash(t *testing.T) {
	if again := Hash("a"); again != Hash(string([]byte("a"))) || Hash("a") == Hash("b") {
		t.Error("hash")
	}
	part := 0
	for i := range 1000 {
		if Hash(string(rune('a'+i%26))+time.Duration(i).String())%100 < 30 {
			part++
		}
	}
	if part < 250 || part > 350 {
		t.Errorf("%d of 1000 below 30 %%", part)
	}
}

// held is slots that a caller held for a time.
type held struct {
	caller   uint64
	slots    int
	from, to time.Duration
}

// Until callers are forgotten, the answers are those of a twin that integrates all that was ever held.
func TestSharesAreThoseOfASlowTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	compared, overs := 0, 0
	for range 200 {
		var s Shares
		var past []held
		var work []Ticket
		callers, limit, now := uint64(2+rng.IntN(4)), 1+rng.IntN(10), time.Duration(0)
		seen := map[uint64]bool{}
		for range 300 {
			now += time.Duration(rng.ExpFloat64() * float64(lull) / 1000)
			if now > 2*lull { // nobody is forgotten before
				break
			}
			if i := rng.IntN(len(work) + 1); i < len(work) && rng.IntN(3) > 0 {
				w := &work[i]
				switch {
				case w.state == waits && rng.IntN(2) == 0:
					s.Start(now, w)
					past = append(past, held{w.key, w.slots, now, -1})
				case w.state == waits:
					s.Leave(now, w)
				case w.state == runs:
					s.Leave(now, w)
					for j := range past {
						if past[j].caller == w.key && past[j].slots == w.slots && past[j].to < 0 {
							past[j].to = now // any of equal ones: the sums are the same from here on
							break
						}
					}
				}
				continue
			}
			caller := rng.Uint64N(callers)
			seen[caller] = true
			used, all := 0., 0.
			for _, h := range past {
				end, isHeld := h.to, 0.
				if end < 0 {
					end, isHeld = now, float64(h.slots)
				}
				u := isHeld + float64(h.slots)*(math.Exp(-float64(now-end)/float64(lull))-math.Exp(-float64(now-h.from)/float64(lull)))
				all += u
				if h.caller == caller {
					used += u
				}
			}
			others, waiting, waitAll, waiters := 0, 1, 1, map[uint64]bool{caller: true}
			for _, w := range work {
				if w.key == caller && w.state != left {
					others++
				}
				if w.state == waits {
					waitAll++
					waiters[w.key] = true
					if w.key == caller {
						waiting++
					}
				}
			}
			most := max(float64(limit), all)
			want := len(seen) > 1 && others > 0 && (used*float64(len(seen)) > most || waiting*len(waiters) > max(limit, waitAll))
			w, over := s.Enter(now, caller, 1+rng.IntN(3), limit)
			work = append(work, w)
			if math.Abs(used*float64(len(seen))-most) < 1e-6 {
				continue // rounding decides
			}
			if compared++; over != want {
				t.Fatalf("at %v: over %v, want %v: it uses %v of %v, of a limit of %d; %d callers", now, over, want, used, all, limit, len(seen))
			}
			if over {
				overs++
			}
		}
	}
	if overs < compared/10 || overs > compared*9/10 {
		t.Errorf("%d of %d were over their share", overs, compared)
	}
}

// Whatever callers do, the counts add up and what is kept is bounded.
func FuzzShares(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 128, 129, 255})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var s Shares
		var work []Ticket
		now := time.Duration(0)
		for i, b := range steps {
			switch {
			case b < 100:
				w, _ := s.Enter(now, uint64(b), int(b)%4, int(b)%7)
				work = append(work, w)
			case b < 120: // many new callers
				for j := range 500 {
					w, _ := s.Enter(now, uint64(i*1000+j+1000), 1, 5)
					work = append(work, w)
				}
			case b < 170 && len(work) > 0:
				s.Start(now, &work[int(b)%len(work)])
			case b < 220 && len(work) > 0:
				s.Leave(now, &work[len(work)-1])
				work = work[:len(work)-1]
			default:
				now += time.Duration(b) * 100 * time.Millisecond
			}
		}
		s.Leave(now, &Ticket{})
		var sum Shares
		average := 0.
		for _, e := range s.of {
			if e.waiting < 0 || e.running < 0 || e.held < 0 || e.average < 0 {
				t.Fatalf("below nothing: %+v", e)
			}
			e.until(now)
			sum.all.held += e.held
			sum.waiting += e.waiting
			average += e.average
			if e.waiting > 0 {
				sum.waiters++
			}
		}
		s.all.until(now)
		pieces := 0
		for _, w := range work {
			if w.state == waits {
				pieces++
			}
		}
		if sum.all.held != s.all.held || sum.waiting != s.waiting || sum.waiters != s.waiters || pieces != s.waiting ||
			math.Abs(average-s.all.average) > 1e-6*(1+average) || s.Active() > MaxCallers+further {
			t.Fatalf("the sums of all callers are %+v and %v, the counts %+v, %d wait, %d callers", sum.all, average, s.all, pieces, s.Active())
		}
		for i := range work {
			s.Leave(now, &work[i])
		}
		last, _ := s.Enter(now+10*lull, 0, 1, 1)
		if s.Active() != 1 {
			t.Fatalf("%d callers without work stay", s.Active()-1)
		}
		s.Leave(now+10*lull, &last)
		if s.all.held != 0 || s.waiting != 0 || s.waiters != 0 || s.all.average > 1e-6*(1+average) {
			t.Fatalf("at rest %+v", s.all)
		}
	})
}

// Work that is paused uses nothing; the other direction of a nested pause changes nothing, and neither does a
// pause of work that has left.
func TestPausedWorkUsesNothing(t *testing.T) {
	var s Shares
	now := time.Second
	t1, _ := s.admit(now, 1, 10)
	used := func(want int) {
		t.Helper()
		if e := s.of[1]; e.held != want || s.all.held != want {
			t.Errorf("%d are held by the caller and %d by all, want %d", e.held, s.all.held, want)
		}
	}
	used(1)
	s.Pause(now, &t1)
	s.Pause(now, &t1)
	used(0)
	s.Resume(now, &t1)
	used(0)
	s.Resume(now, &t1)
	used(1)
	s.Pause(now, &t1)
	s.Leave(now, &t1)
	used(0)
	s.Resume(now, &t1)
	s.Pause(now, &t1)
	used(0)
}
