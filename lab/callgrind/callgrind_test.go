package callgrind

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
)

func TestBlocksArePlayedInTurns(t *testing.T) {
	var got []string
	var blocks []func()
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		blocks = append(blocks, func() { got = append(got, name) })
	}
	Play(2, 1, blocks)
	rounds := slices.Collect(slices.Chunk(got, len(names)))
	if len(rounds) != 3 || slices.Equal(rounds[0], rounds[1]) && slices.Equal(rounds[1], rounds[2]) {
		t.Error("all rounds have one order:", rounds)
	}
	for _, round := range rounds {
		if slices.Sort(round); !slices.Equal(round, names) {
			t.Error(round)
		}
	}
}

func TestTwiceTheWorkIsTwiceTheInstructions(t *testing.T) {
	soak.WithoutRace(t)
	if !Installed() {
		t.Skip("it takes Valgrind")
	}
	spec := contestant.Spec{Program: "github.com/spillway-go/spillway/lab/callgrind/testdata/burn", Role: "burn", Input: []int{100_000, 200_000, 300_000}}
	const rounds = 4
	got, err := Count(t.Context(), spec, 3, rounds, 7)
	if err != nil {
		t.Fatal(err)
	}
	// What the runtime does by the clock may add some per cent to a block now and then. Blocks that
	// were taken for each other would differ by half.
	one, two, three := slices.Min(got[0]), slices.Min(got[1]), slices.Min(got[2])
	if one < 100_000 || two < 1.7*one || two > 2.3*one || three < 2.7*one || three > 3.3*one {
		t.Errorf("one, two and three times the work: %.0f", got)
	}
	if _, err := Count(t.Context(), spec, 4, rounds, 7); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "has not counted a block") {
		t.Errorf("more blocks than there are: %v", err)
	}
}

func TestTheTotalOfABlockIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.2")
	for text, want := range map[string]float64{"version: 1\nfn=(1) main\n12 30\n\ntotals: 4711\n": 4711, "version: 1\n": 0} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := total(file); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// The instructions of Acquire and Done: with a fixed limit, with the adaptive one, and of a refusal.
//
//	go test ./lab/callgrind -run '^$' -bench Acquire -benchtime 1x
func BenchmarkAcquire(b *testing.B) {
	if !Installed() {
		b.Skip("it takes Valgrind")
	}
	const calls, rounds, seed = 10_000, 5, 7
	spec := contestant.Spec{Program: "github.com/spillway-go/spillway/lab/callgrind/testdata/acquire", Role: "acquire", Input: map[string]int{"Calls": calls, "Rounds": rounds, "Seed": seed}}
	got, err := Count(b.Context(), spec, 3, rounds, seed)
	if err != nil {
		b.Fatal(err)
	}
	for i, name := range []string{"fixed", "adaptive", "refused"} {
		slices.Sort(got[i])
		b.ReportMetric(got[i][rounds/2]/calls, name+"-instructions/call")
	}
}
