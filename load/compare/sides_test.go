package compare

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
)

// answers takes that long, and every n-th answer is an error; 0: none is.
func answers(after time.Duration, n uint64) loadgen.Target {
	return loadgen.TargetFunc(func(_ context.Context, i uint64) loadgen.Outcome {
		time.Sleep(after)
		if n > 0 && i%n == 0 {
			return loadgen.Error
		}
		return loadgen.OK
	})
}

func TestTwoTargetsAreTold(t *testing.T) {
	open, closed := Load{Rate: 100, Block: time.Second}, Load{Clients: 3, Block: time.Second}
	for name, c := range map[string]struct {
		load   Load
		metric int
		after  time.Duration // B's answers
		wrong  uint64        // every how many of them
		want   Verdict
	}{
		"p99":               {open, 0, 12 * time.Millisecond, 0, Worse},
		"p50":               {open, 1, 8 * time.Millisecond, 0, Better},
		"mean":              {closed, 2, 8 * time.Millisecond, 0, Better},
		"goodput":           {closed, 3, 12 * time.Millisecond, 0, Worse},
		"goodput by a rate": {open, 3, 10 * time.Millisecond, 5, Worse},
		"errors":            {open, 4, 10 * time.Millisecond, 5, Worse},
		"no errors":         {open, 4, 10 * time.Millisecond, 0, Undecided},
		"no good answer":    {open, 0, 10 * time.Millisecond, 1, Undecided},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := URLMetrics[c.metric]
			a, err := c.load.Blocks(answers(10*time.Millisecond, 0), m, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			b, err := c.load.Blocks(answers(c.after, c.wrong), m, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), Config{Metric: m, A: a, B: b, Rounds: 7})
			if err != nil || r.Verdict != c.want {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		})
	}
}

func TestALoadIsEitherARateOrClients(t *testing.T) {
	for _, l := range []Load{{}, {Rate: 1, Clients: 1}, {Rate: -1}} {
		if _, err := l.Blocks(loadgen.TargetFunc(nil), URLMetrics[0], nil); err == nil || !strings.Contains(err.Error(), "--rate N") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func TestACommandIsMeasured(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	wall, cpu, printed := CommandMetrics[0], CommandMetrics[1], CommandMetrics[2]
	if x, err := Command("echo 7 of 12.5 ms", printed)(t.Context()); x != 12.5 || err != nil {
		t.Errorf("%v, %v", x, err)
	}
	for _, m := range []Metric{wall, cpu} {
		if x, err := Command("true", m)(t.Context()); !(x >= 0) || err != nil {
			t.Errorf("%s: %v, %v", m.Name, x, err)
		}
	}
	for line, want := range map[string]string{
		"echo none":                     "printed no number",
		"echo one >&2; echo two; false": "exit status 1\none",
	} {
		if _, err := Command(line, printed)(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestTheLastNumberCounts(t *testing.T) {
	for text, want := range map[string]float64{
		"BenchmarkX-2 100 12.5 ns/op": 12.5, "-3": -3, "0.5.": .5, ".25": .25, "1e3": 1000, "+7\n": 7, "took 3.": 3, "3 (in all)": 3, "95%": 95,
		"12.5 ms at p99": 12.5, "12.5 on go1.26 in /tmp/run1": 12.5, "p99=12.5ms p50=3 ms": 3, "mean: 7": 7, `{"p50":3,"p99":12.5}`: 12.5,
		"bench,12.5": 12.5, "a, 4, b": 4, "5;": 5, "p99: 6, ": 6,
	} {
		if got, err := lastNumber(text); got != want || err != nil {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// A part of a word was read as a number: 12 of 12abc, 900 of 900ms beside 1.1 of 1.1s, 234 of
// 1,234, and 26 of a date.
func TestAPartOfAWordIsNoNumber(t *testing.T) {
	for text, want := range map[string]string{
		"12abc": "12abc", "run 5: 12abc": "12abc", "900ms": "900ms", "1,234": "1,234", "2026-11-26": "2026-11-26", "12:30": "12:30", "1.2.3": "1.2.3",
		"0x1F": "0x1F", "1_000": "1_000", "7 ±3": "±3", "1e999": "1e999", "run 5: NaN": "NaN", "7 -Inf": "-Inf", "p99:12.5": "p99:12.5", "5 12/s": "12/s",
		"\x1b[32m12\x1b[0m": "0m",
	} {
		if x, err := lastNumber(text); err == nil || !strings.Contains(err.Error(), strconv.Quote(want)+", which is no number") {
			t.Errorf("%q: %v, %v, want an error that names %s", text, x, err, want)
		}
	}
	for _, text := range []string{"", "none", "p99 of go1.26", "A:B, c"} {
		if x, err := lastNumber(text); err == nil || err.Error() != "no number" {
			t.Errorf("%q: %v, %v", text, x, err)
		}
	}
}

func TestTheEndOfALongOutputIsKept(t *testing.T) {
	var out tail
	for range 10_000 {
		_, _ = out.Write([]byte("a line of output, 31 bytes long\n"))
	}
	_, _ = out.Write([]byte("42"))
	if n := out.end.Len(); n > 2*tailSize || !strings.HasSuffix(out.end.String(), "42") {
		t.Errorf("%d bytes", n)
	}
}
