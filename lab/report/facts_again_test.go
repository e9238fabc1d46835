package report

import (
	"slices"
	"testing"
)

func TestASessionIsDoneAgainWithItsSeedIntoANewFolder(t *testing.T) {
	want := []string{"spillway", "lab", "H", "--repeats", "7", "--seed", "3"}
	for _, args := range [][]string{
		{"spillway", "lab", "H", "--out", "results", "--repeats", "7"},
		{"spillway", "lab", "H", "--seed=9", "--repeats", "7", "--out=results"},
		{"spillway", "lab", "H", "--repeats", "7", "--seed", "3"},
	} {
		if got := again(args, 3); !slices.Equal(got, want) {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := again(nil, 3); got != nil {
		t.Errorf("without a command: %q", got)
	}
}
