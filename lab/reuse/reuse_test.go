package reuse

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
)

func TestMain(m *testing.M) {
	roles := maps.Clone(Experiment.Roles)
	roles[RoleIdle] = contestant.Func(bubble.Func(Bursts)) // as the program virtual does
	labtest.Main(m, roles)
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	p, err := plan(experiment.Sized[Config](""))
	if err != nil {
		t.Fatal(err)
	}
	var runs []results.Run
	for _, k := range p.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
	}
	ledgertest.Check(t, Experiment.Family, runs)
}

func TestBadSettingsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"size is 0: want 1 to 1048576":  func(c *Config) { c.Size = []int{0} },
		"size is empty: want":           func(c *Config) { c.Size = nil },
		"rounds is 1: want at least 3":  func(c *Config) { c.Rounds = 1 },
		"users is 0: want at least 1":   func(c *Config) { c.Users = 0 },
		"bursts is 1: want at least 2":  func(c *Config) { c.Bursts = 1 },
		"off is -1ns: want at least 0s": func(c *Config) { c.Off = -1 },
		"memory-cap is -1: want":        func(c *Config) { c.MemoryCap = -1 },
		`contestant "pool"`:             func(c *Config) { c.Contestant = []string{"pool"} },
	} {
		c := experiment.Sized[Config]("")
		spoil(&c)
		_, _, err := experiment.Session{Dir: t.TempDir()}.Run(t.Context(), Experiment, &c)
		if !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	c := experiment.Sized[Config]("quick")
	c.Size = []int{small} // under the race detector, large ones take long
	c.Rounds, c.Time, c.Users, c.Bursts, c.On, c.Off = 3, 100*time.Microsecond, 20, 2, 10*time.Millisecond, time.Millisecond
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}
	res, runs, err := s.Run(t.Context(), Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			unmeasured := claim.ID == "reuse-3" || a.Part == "dirty"             // which tests prove, and which needs large ones
			lost := a.Missing && strings.Contains(a.Why, "is missing in repeat") // in so short a time a figure may be lost in noise
			if a.Missing != unmeasured && !lost {
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
	for _, r := range runs {
		// A build that detects misuse compares each returned object with two new ones.
		if off := r.Extra["off_by"]; off != 0 && off != 2 {
			t.Errorf("%s, %s: the reported reuse is off by %v", r.Setup, r.Pattern, off)
		}
	}
}
