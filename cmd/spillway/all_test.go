package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/results"
)

func TestSeveralExperimentsAreOneSession(t *testing.T) {
	for _, test := range [][2][]string{
		{{"lab"}, {"lab"}},
		{{"lab", "H"}, {"lab", "H"}},
		{{"lab", "H", "--quick"}, {"lab", "H", "--quick"}},
		{{"lab", "h", "F", "--quick"}, {"lab", "all", "h", "F", "--quick"}},
		{{"lab", "judge", "H"}, {"lab", "judge", "H"}},
		{{"load", "H", "F"}, {"load", "H", "F"}},
	} {
		if got := withAll(test[0]); !slices.Equal(got, test[1]) {
			t.Errorf("%v is %v, want %v", test[0], got, test[1])
		}
	}
}

func TestThePublishedClaimsFitIntoAQuarterOfAnHour(t *testing.T) {
	s := withBudget(15 * time.Minute)
	s.Experiments = experiments
	const spare = 2 * time.Minute // for what is disturbed, and for claims that stay open
	if needs, err := s.Needs(); err != nil || needs > s.Budget-spare {
		t.Errorf("they need %v of %v, %v", needs, s.Budget, err)
	}
	if got := forecast(2 * time.Hour); strings.Contains(got, "without") {
		t.Errorf("in two hours: %s", got)
	}
	t.Logf("by default %s; all of it %s", forecast(15*time.Minute), forecast(2*time.Hour))
}

func TestASessionGivesItsServerToTheExperimentsThatHaveAUseForIt(t *testing.T) {
	c := labAllCmd{Postgres: "postgres://postgres@127.0.0.1:1/postgres"}
	var given []string
	for _, e := range experiments {
		config := e.Config("whole")
		c.complete(config)
		if f := reflect.ValueOf(config).Elem().FieldByName("Postgres"); f.IsValid() && f.String() == string(c.Postgres) {
			given = append(given, e.ID)
		}
	}
	if !slices.Contains(given, "H") || !slices.Contains(given, "db") {
		t.Errorf("given to %v", given)
	}
}

func TestASessionIsJudgedAgain(t *testing.T) {
	soak.WithoutRace(t)
	dir := t.TempDir()
	copyOfTinyRun(t, filepath.Join(dir, "reuse"))
	if err := results.WriteSession(dir, results.Session{Schema: results.SessionSchema, Experiments: []string{"reuse", "H"}}); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(t, "lab", "judge", dir)
	if code != 0 || !strings.Contains(stdout, "reuse-1") || !strings.Contains(stdout, "a goal of ours: ") || !strings.Contains(stdout, "results.json") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	s, err := results.ReadSession(dir)
	if err != nil || len(s.Parts) != 1 || len(s.Parts[0].Claims) == 0 || len(s.Advice) == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if code, stdout, _ := command(t, "lab", "judge", dir, "--json"); code != 0 || !strings.Contains(stdout, results.SessionSchema) {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	if err := os.WriteFile(filepath.Join(dir, "reuse", results.ResultsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = command(t, "lab", "judge", dir)
	if s, err := results.ReadSession(dir); code != 2 || !strings.Contains(stderr, "damaged") || err != nil || len(s.Parts) != 1 {
		t.Errorf("a part that is damaged: exit code %d, %s, %d parts, %v", code, stderr, len(s.Parts), err)
	}
}
