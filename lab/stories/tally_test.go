package stories

import (
	"math"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/service"
)

// counted is a tally in which so many of ten requests of each step were answered well.
func counted(good ...int) *tally {
	t := newTally(service.Load{Stretches: []service.Stretch{{For: time.Duration(len(good)) * service.Step}}})
	for i, n := range good {
		for k := range 10 {
			t.add(time.Duration(i)*service.Step+time.Duration(k), k < n)
		}
	}
	return t
}

func TestAShareIsOfTheRequestsSentInThatTime(t *testing.T) {
	c := counted(10, 5, 0, 10)
	for _, test := range []struct {
		from, to time.Duration
		want     float64
	}{{0, 1, 100}, {1, 2, 50}, {0, 3, 50}, {1, 9, 50}} {
		if got := c.share(test.from*service.Step, test.to*service.Step); got != test.want {
			t.Errorf("from %v to %v: %v, want %v", test.from, test.to, got, test.want)
		}
	}
	if got := c.share(4*service.Step, 5*service.Step); !math.IsNaN(got) {
		t.Errorf("of none it is %v", got)
	}
}

func TestRecoveredIsFromWhereASecondIsGood(t *testing.T) {
	good := make([]int, 30)
	good[3] = 10 // a moment is not enough
	for i := 15; i < len(good); i++ {
		good[i] = 10
	}
	if at, ever := counted(good...).recovered(90); !ever || at != 1500*time.Millisecond { // step 14, and nine good ones
		t.Errorf("%v, %v", at, ever)
	}
	for i := 20; i < len(good); i++ {
		good[i] = 5
	}
	if at, ever := counted(good...).recovered(90); ever || at != 3*time.Second {
		t.Errorf("%v, %v", at, ever)
	}
}
