package patterns

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
)

func trialOf(seed uint64) experiment.Trial { return experiment.Trial{Seed: seed} }

func TestThePublishedPoolReportsHalfAndReusesNextToNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops objects on purpose under the race detector")
	}
	j := job{Requests: 20_000, Clients: 100, Workers: 20, QueueSize: 100, QueueWait: time.Minute, ErrorRate: 0.05, Patients: 1000, Seed: 7}
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
	for pattern, leaks := range map[string]bool{Uncleared: true, "optimized": false, "workerpool": false} {
		j := job{Pattern: pattern, Requests: 4_000, Clients: 50, Workers: 20, Patients: 1000, Seed: 3}
		contestant := reusing
		if pattern == Uncleared {
			contestant = uncleared
		}
		run, err := contestant(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Extra["foreign"]; (got > 0) != leaks && !(leaks && raceEnabled) {
			t.Errorf("%s: %v foreign answers", pattern, got)
		}
	}
}

func TestTheDemonstrationsShowTheFaultAndOursHasNone(t *testing.T) {
	if raceEnabled {
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
