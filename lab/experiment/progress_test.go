package experiment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Programs are built before it is known how much there is to do. Their lines once had one
// beneath them that said 100 %.
func TestWithoutASessionThereIsNoLiveLine(t *testing.T) {
	var out strings.Builder
	p := experiment.NewProgress(&out, true, 40)
	fmt.Fprintln(p, "building")
	if got := out.String(); got != "\r\x1b[Kbuilding\n" {
		t.Errorf("before: %q", got)
	}
	s := session(t, 1, 1)
	s.Progress = p
	if _, _, err := start(t, t.Context(), s, experiment.Plan{Cells: []experiment.Cell{new(runLog).cell("a")}}); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	fmt.Fprintln(p, "written")
	if got := out.String(); got != "\r\x1b[Kwritten\n" {
		t.Errorf("after: %q", got)
	}
}

// slow is a cell that is expected to take 10 s and takes the given times, one after the
// other, the last of them from then on.
func slow(name string, times ...time.Duration) experiment.Cell {
	return experiment.Cell{Setup: "s", Load: "l", Pattern: name, Expect: 10 * time.Second, Run: func(context.Context, experiment.Trial) (results.Run, error) {
		time.Sleep(times[0])
		times = times[min(1, len(times)-1):]
		return results.Run{}, nil
	}}
}

// forecast are the words of the progress on the time that is left, at the start and after
// each step, without the preparation.
func forecast(out string) (left []string) {
	for line := range strings.Lines(out) {
		if _, rest, ok := strings.Cut(line, "this takes about "); ok {
			left = append(left, strings.TrimSuffix(rest, " on an idle machine\n"))
		} else if i := strings.LastIndex(line, ", "); i >= 0 {
			left = append(left, strings.TrimSuffix(line[i+2:], " left)\n"))
		}
	}
	return left
}

// One slow group used to make everything after it slow.
func TestWhatIsLeftTakesAsLongAsItTookLast(t *testing.T) {
	for name, test := range map[string]struct {
		cells  [][]time.Duration // what each of them takes, one time after the other
		beside bool
		want   []string
	}{
		"slow":         {[][]time.Duration{{time.Minute}}, false, []string{"30s", "2 min", "1 min", "0s"}},
		"slow once":    {[][]time.Duration{{time.Minute, 5 * time.Second}}, false, []string{"30s", "2 min", "5s", "0s"}},
		"side by side": {[][]time.Duration{{time.Second}, {20 * time.Second}}, true, []string{"30s", "40s", "20s", "0s"}},
		"two cells":    {[][]time.Duration{{10 * time.Second}, {10 * time.Second}}, false, []string{"1 min", "50s", "40s", "30s", "20s", "10s", "0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				s := session(t, 1, 3)
				s.Progress = experiment.NewProgress(&out, false, 0)
				var cells []experiment.Cell
				for i, times := range test.cells {
					c := slow(fmt.Sprint("cell ", i), times...)
					if test.beside {
						c.Beside = "each other"
					}
					cells = append(cells, c)
				}
				if _, _, err := start(t, t.Context(), s, experiment.Plan{Cells: cells}); err != nil {
					t.Fatal(err)
				}
				if got := forecast(out.String()); !slices.Equal(got, test.want) {
					t.Errorf("got %v, want %v of\n%s", got, test.want, out.String())
				}
			})
		})
	}
}

func TestTheLiveLineCountsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		s := session(t, 1, 2)
		s.Progress = experiment.NewProgress(&out, true, 100)
		if _, _, err := start(t, t.Context(), s, experiment.Plan{Cells: []experiment.Cell{slow("a", 30*time.Second)}}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"  0 %, 20s left · repeat 1 of 2", " 25 %, 15s left · repeat 1 of 2", // as expected
			" 67 %, 10s left · repeat 1 of 2", // later than expected: the rest stays
			" 50 %, 30s left · repeat 2 of 2", " 75 %, 15s left · repeat 2 of 2", "100 %, 0s left · repeat 2 of 2",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it never said %q", want)
			}
		}
	})
}
