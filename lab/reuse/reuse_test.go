package reuse

import (
	"errors"
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
	ledgertest.Check(t, Experiment.Family, labtest.Planned(plan(experiment.Sized[Config](""))))
}

func TestAnUnknownContestantIsRefused(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.Contestant = []string{"pool"}
	_, _, err := experiment.Session{Dir: t.TempDir()}.Run(t.Context(), Experiment, &c)
	if !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), `contestant "pool"`) {
		t.Error(err)
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	c := experiment.Sized[Config]("quick")
	c.Size = []int{small} // under the race detector, large ones take long
	c.Rounds, c.Time, c.Users, c.Bursts, c.On, c.Off = 3, 100*time.Microsecond, 20, 2, 10*time.Millisecond, time.Millisecond
	res, runs := labtest.Session(t, Experiment, &c)
	labtest.Answered(t, res, func(c results.Claim, a results.Answer) bool {
		unmeasured := c.ID == "reuse-3" || a.Part == "dirty"                 // which tests prove, and which needs large ones
		return unmeasured || strings.Contains(a.Why, "is missing in repeat") // in so short a time a figure may be lost in noise
	})
	for _, r := range runs {
		// A build that detects misuse compares each returned object with two new ones.
		if off := r.Extra["off_by"]; off != 0 && off != 2 {
			t.Errorf("%s, %s: the reported reuse is off by %v", r.Setup, r.Pattern, off)
		}
	}
}
