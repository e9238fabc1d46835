package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlyTheTimeOfABubbleIsVirtual(t *testing.T) {
	if Virtual(time.Now()) {
		t.Error("real time is virtual")
	}
	synctest.Test(t, func(t *testing.T) {
		if !Virtual(time.Now()) {
			t.Error("the time of a bubble is real")
		}
	})
}
