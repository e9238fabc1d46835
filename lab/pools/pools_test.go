package pools

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheDefaultsAreSoundAndNotScaled(t *testing.T) {
	if err := Defaults().check(); err != nil || Defaults().scaled() != "" {
		t.Errorf("defaults: %v, scaled %q", err, Defaults().scaled())
	}
	if err := Quick().check(); err != nil || Quick().scaled() == "" {
		t.Errorf("quick: %v, scaled %q", err, Quick().scaled())
	}
}

func TestBadInputIsNamed(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"contestant \"x\"": func(c *Config) { c.Contestants = []string{"x"} },
		"part \"x\"":       func(c *Config) { c.Parts = []string{"x"} },
		"workers is 0":     func(c *Config) { c.Workers = []int{0} },
		"producers is -1":  func(c *Config) { c.Producers = []int{-1} },
		"work is 1s":       func(c *Config) { c.Works = []time.Duration{time.Second} },
		"buffer is 0":      func(c *Config) { c.Buffer = 0 },
		"rounds 0":         func(c *Config) { c.Rounds = 0 },
		"size is 0":        func(c *Config) { c.Sizes = []int{0} },
		"burst of 0":       func(c *Config) { c.BurstJobs = 0 },
		"measure 0s":       func(c *Config) { c.Measure = 0 },
		"nothing to do":    func(c *Config) { c.Workers = nil },
	} {
		c := Defaults()
		spoil(&c)
		if _, err := (Classic{c}).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestChosenContestantsOnly(t *testing.T) {
	c := Defaults()
	c.Contestants = []string{Channel, Spillway}
	c.Parts = slices.DeleteFunc(Parts(), is(Sizing))
	plan, err := Classic{c}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range plan.Cells {
		if cell.Pattern != Channel && cell.Pattern != Spillway {
			t.Errorf("%s was not chosen", cell.Label())
		}
	}
}
