package limit

import (
	"testing"
	"time"
)

// TestConformance is the exam every law passes.
func TestConformance(t *testing.T) {
	laws := map[string]func() Law{
		"fixed":    func() Law { return NewFixed(7) },
		"adaptive": func() Law { return NewAdaptive() },
	}
	for name, build := range laws {
		t.Run(name, func(t *testing.T) {
			law := build()
			if law.Name() != name {
				t.Errorf("calls itself %q", law.Name())
			}
			at := time.Duration(0)
			for i := range 1000 {
				at += time.Millisecond
				law.Admit(at-10*time.Millisecond, Load{InFlight: i%9 + 1})
				law.Observe(Sample{Seq: uint64(i + 1), Start: at - 10*time.Millisecond, End: at, Outcome: Outcome(i % 4)}, Load{InFlight: i % 9})
				if law.Limit() < 1 {
					t.Fatalf("after %d samples the limit is %d", i+1, law.Limit())
				}
			}
			if law.State() == "" {
				t.Error("does not say what it is doing")
			}
		})
	}
}

func TestFixedNeverGoesBelowOne(t *testing.T) {
	for _, n := range []int{-5, 0, 1} {
		if got := NewFixed(n).Limit(); got != 1 {
			t.Errorf("NewFixed(%d).Limit() = %d, want 1", n, got)
		}
	}
}
