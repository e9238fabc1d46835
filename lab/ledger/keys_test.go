package ledger

import (
	"slices"
	"testing"
)

func TestAContestantThatIsNamedAgainIsATwin(t *testing.T) {
	want := []Key{{Setup: "s", Load: "l", Pattern: "a"}, {Setup: "s", Load: "l", Pattern: "b"}, {Setup: "s", Load: "l", Pattern: "a", Twin: true}}
	if got := Keys("s", "l", []string{"a", "b", "a"}); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
