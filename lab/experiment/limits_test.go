package experiment

import (
	"math"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	type config struct {
		Rounds int             `default:"5" least:"3"`
		Sizes  []int           `default:"1,2" least:"1" most:"64"`
		Time   time.Duration   `default:"5ms" above:"0s" most:"1m"`
		Branch []time.Duration `least:"100ns" most:"1s"`
		Rate   float64         `default:"1" above:"0"`
	}
	for _, test := range []struct {
		change func(*config)
		want   string
	}{
		{func(*config) {}, ""},
		{func(c *config) { c.Branch = []time.Duration{time.Second} }, ""},
		{func(c *config) { c.Rounds = 2 }, "rounds is 2: want at least 3"},
		{func(c *config) { c.Sizes = []int{1, 65} }, "sizes is 1 65: want 1 to 64"},
		{func(c *config) { c.Sizes = nil }, "sizes is empty: want 1 to 64"},
		{func(c *config) { c.Time = 0 }, "time is 0s: want more than 0s and at most 1m"},
		{func(c *config) { c.Branch = []time.Duration{1, time.Second} }, "branch is 1ns 1s: want 100ns to 1s"},
		{func(c *config) { c.Rate = math.NaN() }, "rate is NaN: want more than 0"},
	} {
		c := Sized[config]("")
		test.change(&c)
		got := ""
		if err := check(&c); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// Estimates and help are made without the environment, which may hold anything.
func TestTheEnvironmentDoesNotSpoilTheDefaults(t *testing.T) {
	t.Setenv("SPILLWAY_LAB_REPEATS", "many")
	t.Setenv("SPILLWAY_LAB_QUICK", "banana")
	if got := Sized[Single](""); got.Repeats != 7 || got.Quick {
		t.Errorf("%+v", got)
	}
}
