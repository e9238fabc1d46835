package patterns

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

// The plan names the service's patterns and patients without importing it.
func TestThePlanSpeaksOfThisService(t *testing.T) {
	for _, name := range []string{plan.Naive, plan.WorkerPool, plan.Optimized, plan.Limiter} {
		if _, err := service.New(name, service.Config{Workers: 1}); err != nil {
			t.Error(err)
		}
	}
	j := plan.Job{Patients: patientapi.MaxPatients, Seed: 5}
	if got, want := j.ID(3), patientapi.FormatID(1+3*7919+5); got != want {
		t.Errorf("patient %s, want %s", got, want)
	}
	c := plan.Defaults()
	c.Patients = patientapi.MaxPatients
	if _, err := (plan.Experiment{Config: c}).Plan(); err != nil {
		t.Error(err)
	}
}

func TestThePublishedPoolReportsHalfAndReusesNextToNothing(t *testing.T) {
	if usage.Race {
		t.Skip("sync.Pool drops objects on purpose under the race detector")
	}
	j := job{plan.Job{Requests: 20_000, Clients: 100, Workers: 20, ErrorRate: 0.05, Patients: 1000, Seed: 7}}
	run, err := asPrinted(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if hit := run.Extra["reported_hit_rate"]; hit < 0.505 || hit > 0.52 {
		t.Errorf("it reports %.3f, want about 1/1.95", hit)
	}
	if reuse := run.Process.ReuseRate; reuse < 0.02 || reuse > 0.06 {
		t.Errorf("true reuse %.3f, want about 0.05", reuse)
	}
}

func TestUnclearedReuseShowsForeignDataAndOursNone(t *testing.T) {
	for pattern, leaks := range map[string]bool{plan.Uncleared: true, "optimized": false, "workerpool": false} {
		j := job{plan.Job{Pattern: pattern, Requests: 4_000, Clients: 50, Workers: 20, Patients: 1000, Seed: 3}}
		run, err := reusing(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Extra["foreign"]; (got > 0) != leaks && !(leaks && usage.Race) {
			t.Errorf("%s: %v foreign answers", pattern, got)
		}
	}
}

func TestTheDemonstrationsShowTheFaultAndOursHasNone(t *testing.T) {
	if usage.Race {
		t.Skip("the specimens are data races by design: the detector would end them before the fault shows")
	}
	for _, d := range demonstrations.Demos() {
		demo, err := d.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
			continue
		}
		counts := map[string]float64{}
		for _, c := range demo.Counts {
			counts[c.Name] = c.N
		}
		switch d.ID {
		case "early-return":
			if counts["empty 200, as printed"] < 900 || counts["empty 200, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		case "shared-reply":
			if counts["empty, as printed"] < 40_000 || counts["another patient, cleared on Get only"] == 0 ||
				counts["empty, ours"] != 0 || counts["another patient, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		case "late-retry-after":
			if counts["without Retry-After, as printed"] != 500 || counts["refused, ours"] == 0 || counts["without Retry-After, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		default:
			t.Errorf("no test checks %s", d.ID)
		}
	}
}

func TestAMemoryCapKillsTheServerAndTheRunSaysSo(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("the memory cap needs Linux")
	}
	c := plan.Defaults()
	c.MemoryCap, c.Patients, c.Patterns, c.Requests = 1<<20, 100, []string{plan.Naive}, 10
	h, err := plan.Experiment{Config: c}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, planned := range h.Cells {
		if planned.Setup == plan.Published && planned.Load == plan.Low && planned.Pattern == plan.Naive {
			if r, err := planned.Run(t.Context(), experiment.Trial{Seed: 1}); err != nil || !strings.Contains(r.Killed, "memory cap of 1 MiB") {
				t.Errorf("killed %q, %v", r.Killed, err)
			}
			return
		}
	}
	t.Fatal("no such cell")
}
