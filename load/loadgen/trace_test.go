package loadgen

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestATraceIsPlayedAsItWasRecorded(t *testing.T) {
	const second = time.Second
	for text, want := range map[string][]time.Duration{
		"0\n0.5\n2\n":                                {0, second / 2, 2 * second},
		"1.5s\n1m\n\n# end\n":                        {0, 58500 * time.Millisecond},
		"time,status\n3,200\n1,503\n":                {0, 2 * second},
		"\ufeff\"at\",\"x\"\n\"7\",\"y\"":            {0},
		"1763862000.000001\r\n1763862001.000002\r\n": {0, second + time.Microsecond},
		"-1s\n1s": {0, 2 * second},
	} {
		offsets, err := ReadTrace(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		s := Trace(offsets)
		if got := slices.Collect(Times(s)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if at, ok := s.At(uint64(len(want))); ok || at != want[len(want)-1] {
			t.Errorf("%q: after the end %v, %v", text, at, ok)
		}
	}
	for text, want := range map[string]string{"": "want a line", "at\n": "want a line", "1\nx\n": "line 2", "1\n1h30\n2 s\n": "line 3", strings.Repeat("1", 70_000): "trace:"} {
		if offsets, err := ReadTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, %v, want an error with %q", text, offsets, err, want)
		}
	}
	if _, err := Run(t.Context(), Config{Target: instant, Open: Trace(nil)}); err == nil {
		t.Error("an empty trace is no error")
	}
	synctest.Test(t, func(t *testing.T) {
		r := mustRun(t, t.Context(), Config{Target: takes(0), Open: Trace([]time.Duration{second, 3 * second, second})})
		if r.Offered != 3 || r.Elapsed != 2*second || r.Series[0].Sent != 2 {
			t.Errorf("%d in %v, %d of them in the first second", r.Offered, r.Elapsed, r.Series[0].Sent)
		}
	})
}

func FuzzReadTrace(f *testing.F) {
	for _, s := range []string{"0\n0.5\n", "at,x\n1s,2\n", "# c\n\n5m\n", "1763862000.5", "-9223372036s\n9223372036s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		offsets, err := ReadTrace(strings.NewReader(s))
		if err != nil {
			if offsets != nil || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%v beside %q", offsets, err)
			}
			return
		}
		schedule := Trace(offsets)
		if schedule.(trace).check() != nil {
			return
		}
		times := slices.Collect(Times(schedule))
		if len(times) != len(offsets) || times[0] != 0 || !slices.IsSorted(times) {
			t.Errorf("%q: %v", s, times)
		}
	})
}
