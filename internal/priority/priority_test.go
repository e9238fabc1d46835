package priority

import (
	"testing"

	"github.com/spillway-go/spillway"
)

func TestEachPriorityHasAPlaceOfItsOwn(t *testing.T) {
	if n := int(spillway.Critical-spillway.Low) + 1; n != Levels {
		t.Fatalf("%d levels for %d priorities", Levels, n)
	}
	for level, p := range []spillway.Priority{spillway.Critical, spillway.High, spillway.Normal, spillway.Low} {
		if Level(p) != level || Of(level) != p {
			t.Errorf("%v has the level %d, and level %d is %v", p, Level(p), level, Of(level))
		}
	}
	if Level(127) != 0 || Level(-128) != Levels-1 {
		t.Errorf("out of range: %d and %d", Level(127), Level(-128))
	}
}
