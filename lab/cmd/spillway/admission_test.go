package main

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/admission"
)

func TestAnAdmissionRunFromLoadToVerdict(t *testing.T) {
	stored, runs, _ := journey{
		args: []string{"admission", "--part", "dryrun", "--part", "hostile", "--repeats", "1", "--warm-up", "100ms", "--measure", "300ms",
			"--slots", "3", "--min-work", "10ms", "--max-work", "20ms", "--connections", "40"},
		experiment: "admission",
		report:     []string{"Where retries are counted", "dryrun, degrading backend", "hostile, N-way backend"},
	}.run(t)
	if len(stored.Claims) != 7 {
		t.Errorf("%d claims, want 7", len(stored.Claims))
	}
	if len(runs) != 6 {
		t.Errorf("%d runs, want 6", len(runs))
	}
	for _, r := range runs {
		if r.Failed != "" || r.Killed != "" || r.Offered == 0 {
			t.Errorf("%s %s: failed %q, killed %q, offered %d", r.Setup, r.Pattern, r.Failed, r.Killed, r.Offered)
		}
		hostile := strings.HasPrefix(r.Setup, admission.Hostile) && r.Pattern == admission.Spillway
		if hostile && (r.Extra["attack_idle"] != 40 || r.Extra["attack_slowloris"] == 0 || r.Extra["probes"] == 0) {
			t.Errorf("hostile clients: %v", r.Extra)
		}
		if r.Pattern == admission.DryRun && r.Extra["refused"]+r.Extra["shed"] > 0 {
			t.Errorf("%s: a dry run refused %v", r.Setup, r.Extra)
		}
	}
}
