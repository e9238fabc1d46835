package limit

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// steady plays a saturated backend to a law at no cost of its own: latencies are around 10 ms, and
// all work succeeds.
type steady struct {
	law Law
	at  time.Duration
	seq uint64
}

func (s *steady) step() {
	s.at += 200 * time.Microsecond
	s.seq++
	load := Load{InFlight: s.law.Limit(), Queued: 3}
	s.law.Admit(s.at, load)
	lag := uint64(load.InFlight)
	if s.seq <= lag {
		return
	}
	elapsed := 10*time.Millisecond + time.Duration(s.seq*7919%1000)*time.Microsecond
	load.InFlight--
	s.law.Observe(Sample{Seq: s.seq - lag, Start: s.at - min(elapsed, s.at), End: s.at, Class: uint8(s.seq % Classes)}, load)
}

func TestLawsDoNotAllocate(t *testing.T) {
	eachLaw(t, func(t *testing.T, c contestant) {
		s := steady{law: c.build()}
		for range 50_000 { // until slices have grown to their size
			s.step()
		}
		const batch = 1000
		got := testing.AllocsPerRun(50, func() {
			for range batch {
				s.step()
			}
		})
		if got > 0.05*batch {
			t.Errorf("%.2f allocations for an admission and its end, want none", got/batch)
		}
	})
}

func BenchmarkLaw(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(laws)) {
		c := laws[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s := steady{law: c.build()}
			for b.Loop() {
				s.step()
			}
		})
	}
}
