package limit

import (
	"math/rand/v2"
	"testing"
	"time"
)

// tape plays an arbitrary sequence of events, encoded in bytes, to a law. Any
// bytes are a valid tape: outcomes in any order, times that stand still or leap,
// ends of work that was never admitted, admissions that never end.
type tape struct {
	law     subject
	now     time.Duration
	seq     uint64
	running []Sample
	check   func()
}

// leap converts a byte to a time span: zero, or 1 µs to about 2.5 hours in steps of half an octave.
// The longest span is long enough for all memories to expire.
func leap(b byte) time.Duration {
	if b%68 == 0 {
		return 0
	}
	d := time.Microsecond << ((b % 68) / 2)
	return d + time.Duration(b%2)*d/2
}

func (t *tape) load(queued byte) Load {
	return Load{InFlight: len(t.running), Queued: int(queued % 4 * 5)}
}

func (t *tape) admit(queued byte) {
	t.seq++
	t.running = append(t.running, Sample{Seq: t.seq, Start: t.now})
	t.law.Admit(t.now, t.load(queued))
	t.check()
}

func (t *tape) end(i int, o Outcome, class uint8, queued byte) {
	s := t.running[i]
	t.running[i] = t.running[len(t.running)-1]
	t.running = t.running[:len(t.running)-1]
	s.End, s.Outcome, s.Class = t.now, o, class
	t.law.Observe(s, t.load(queued))
	t.check()
}

// play plays data, three bytes per event.
func (t *tape) play(data []byte) {
	for ; len(data) >= 3; data = data[3:] {
		op, x, y := data[0], data[1], data[2]
		switch op % 8 {
		case 0, 1:
			t.now += leap(x)
			t.admit(y)
		case 2: // many at once
			for range int(x)*4 + 1 {
				t.admit(y)
			}
		case 3, 4:
			t.now += leap(x)
			if len(t.running) > 0 {
				t.end(int(y)%len(t.running), Outcome(op/8%6), y%Classes, y)
			}
		case 5: // all running work ends
			for len(t.running) > 0 {
				t.now += leap(x) / 256
				t.end(0, Outcome(op/8%6), y%Classes, y)
			}
		case 6: // rounds of work, as in a limiter in use
			for range int(y)%32 + 1 {
				for len(t.running) < min(t.law.Limit(), 64) {
					t.admit(1)
				}
				t.now += leap(x % 50)
				for len(t.running) > 0 {
					t.end(0, Outcome(op/8%6), y%Classes, 1)
				}
			}
		case 7: // the end of work that was never admitted
			t.law.Observe(Sample{Seq: uint64(x)<<(y%64) + uint64(y), Start: t.now - min(t.now, leap(x)), End: t.now, Outcome: Outcome(op / 8 % 6), Class: y % Classes}, t.load(y))
			t.check()
		}
	}
}

// play gives a fresh law a history, checks it after every event, and returns the
// tape and the limits it went through.
func play(t *testing.T, law subject, data []byte) (*tape, []int) {
	t.Helper()
	limits := []int{law.Limit()}
	p := &tape{law: law}
	p.check = func() {
		n := law.Limit()
		if n < 1 || n > mostSlots {
			t.Fatalf("the limit is %d at %v: %s", n, p.now, law.State())
		}
		if limits[len(limits)-1] != n {
			limits = append(limits, n)
			if law.Why() == "" {
				t.Errorf("went from %d to %d at %v and does not say why", limits[len(limits)-2], n, p.now)
			}
		}
	}
	p.check()
	p.play(data)
	return p, limits
}

// after ends all running work and returns a model that continues where the tape ended.
func (t *tape) after(passive bool) *model {
	for len(t.running) > 0 {
		t.end(0, Unknown, 0, 0)
	}
	m := newModel(t.law, 0, 20*time.Millisecond)
	m.now, m.seq, m.passive = t.now, t.seq, passive
	if passive {
		m.demand, m.service = 16, 100*time.Millisecond
	}
	return m
}

// checkHistory checks the properties that a law must have after any history.
func checkHistory(t *testing.T, c contestant, data []byte) {
	t.Helper()
	law := c.build()
	p, limits := play(t, law, data)
	if law.State() == "" || law.Name() == "" {
		t.Error("does not say what it is doing")
	}
	_, again := play(t, c.build(), data)
	if len(again) != len(limits) {
		t.Fatalf("the same events led through %d limits, then %d", len(limits), len(again))
	}
	for i := range limits {
		if limits[i] != again[i] {
			t.Fatalf("the same events led to limit %d, then %d", limits[i], again[i])
		}
	}
	if c.ignores {
		return
	}
	checkRecovers(t, c, p)
	q, _ := play(t, c.build(), data)
	checkComesDown(t, c, q)
}

// checkRecovers checks that a small limit grows again during a long calm time, with all slots in
// use and flat latency.
func checkRecovers(t *testing.T, c contestant, p *tape) {
	t.Helper()
	from := p.law.Limit()
	if from > 32 {
		return // nothing to recover from
	}
	m := p.after(c.passive)
	goal := 2*from + 8
	if c.passive {
		goal = 16 // the work in flight
	}
	if from < goal && !m.until(m.now+45*time.Minute, func() bool { return p.law.Limit() >= goal }) {
		t.Errorf("went from limit %d to %d only in 45 calm minutes: %s, %s", from, p.law.Limit(), p.law.State(), p.law.Why())
	}
}

// checkComesDown checks that the limit falls if all work runs into its deadline.
func checkComesDown(t *testing.T, c contestant, p *tape) {
	t.Helper()
	from := p.law.Limit()
	if from > 500 {
		return // costs the test too much
	}
	m := p.after(c.passive)
	m.service, m.deadline = time.Hour, 500*time.Millisecond
	goal := max(from/4, 2)
	if c.passive { // the law can only tell that at least half is too much
		m.demand, goal = 40, 24
		m.run(time.Minute)
		from = p.law.Limit()
	}
	if from > goal && !m.until(m.now+10*time.Minute, func() bool { return p.law.Limit() <= goal }) {
		t.Errorf("went from limit %d to %d only, drowning for 10 minutes: %s, %s", from, p.law.Limit(), p.law.State(), p.law.Why())
	}
}

// histories are the tapes that every test run plays. The fuzzer finds more.
var histories = map[string][]byte{
	"nothing":                    {},
	"zero latencies":             {6, 0, 31, 6, 0, 31, 6, 0, 31, 6, 0, 31, 6, 0, 31},
	"huge latencies":             {0, 1, 0, 0, 1, 0, 3, 67, 0, 3, 67, 0, 6, 48, 31, 6, 49, 31},
	"time stands still":          {2, 50, 0, 5, 0, 0, 2, 50, 1, 5, 0, 1, 2, 200, 2, 5, 0, 3},
	"everybody leaves":           {22, 20, 31, 22, 20, 31, 22, 20, 31, 22, 20, 31},
	"everything too late":        {14, 38, 31, 14, 38, 31, 14, 38, 31, 14, 38, 31, 14, 38, 31},
	"everything refused below":   {30, 20, 31, 30, 20, 31, 30, 20, 31},
	"everything fails":           {38, 20, 31, 38, 20, 31},
	"unknown how it ended":       {46, 20, 31, 46, 20, 31},
	"ends of unknown work":       {7, 10, 3, 15, 200, 60, 7, 255, 63, 23, 0, 0, 15, 9, 12},
	"thousands never end":        {2, 255, 1, 2, 255, 1, 2, 255, 1, 2, 255, 1, 3, 30, 7},
	"all of a flood too late":    {2, 255, 1, 2, 255, 1, 13, 40, 1, 2, 255, 1, 13, 40, 2},
	"fast, then idle, then slow": {6, 10, 31, 6, 10, 30, 0, 67, 0, 6, 40, 31, 6, 40, 31},
	"many, late by hours":        {6, 50, 55},
	"slow, then idle, then fast": {6, 40, 31, 6, 40, 30, 0, 67, 0, 6, 10, 31, 6, 10, 31},
	// At a limit of 1, with a slightly low baseline, the law once neither trimmed nor raised.
	"drowned to one":          {6, 25, 8, 6, 67, 17, 14, 26, 187},
	"drowned to one, classes": {6, 27, 29, 2, 3, 1, 5, 29, 0, 6, 29, 11, 14, 46, 164, 14, 28, 15, 14, 29, 51, 14, 26, 152},
	"drowned to one, hours":   {14, 66, 28, 6, 26, 24, 3, 66, 148, 14, 27, 141, 14, 27, 192, 14, 24, 127},
}

func TestAnyHistoryLeavesTheLawSane(t *testing.T) {
	eachLaw(t, func(t *testing.T, c contestant) {
		for name, data := range histories {
			t.Run(name, func(t *testing.T) { checkHistory(t, c, data) })
		}
		t.Run("random", func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			tapes := 8
			if raceEnabled {
				tapes = 2
			}
			for range tapes {
				data := make([]byte, 3*r.IntN(200))
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				checkHistory(t, c, data)
				if t.Failed() {
					t.Fatalf("after %v", data)
				}
			}
		})
	})
}

func fuzzLaw(f *testing.F, name string) {
	for _, data := range histories {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkHistory(t, laws[name], data[:min(len(data), 1500)])
	})
}

func FuzzFixed(f *testing.F)     { fuzzLaw(f, "fixed") }
func FuzzAIMD(f *testing.F)      { fuzzLaw(f, "aimd") }
func FuzzGradient2(f *testing.F) { fuzzLaw(f, "gradient2") }
func FuzzPassive(f *testing.F)   { fuzzLaw(f, "passive") }
func FuzzAdaptive(f *testing.F)  { fuzzLaw(f, "adaptive") }
func FuzzJobs(f *testing.F)      { fuzzLaw(f, "jobs") }
