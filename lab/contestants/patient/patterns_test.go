package main

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	plan "github.com/spillway-go/spillway/lab/patterns"
)

// The plan names the service's patterns and patients without importing it.
func TestThePlanSpeaksOfThisService(t *testing.T) {
	for _, name := range []string{plan.Naive, plan.WorkerPool, plan.Optimized, plan.Limiter} {
		if _, err := service.New(name, service.Config{Workers: 1}); err != nil {
			t.Error(err)
		}
	}
	j := plan.Job{Config: plan.Config{Patients: patientapi.MaxPatients}, Seed: 5}
	if got, want := j.ID(3), patientapi.FormatID(1+3*7919+5); got != want {
		t.Errorf("patient %s, want %s", got, want)
	}
	c := experiment.Sized[plan.Config]("")
	c.Patients = patientapi.MaxPatients
	if _, err := plan.Plan(c); err != nil {
		t.Error(err)
	}
}

func TestAMemoryCapKillsTheServerAndTheRunSaysSo(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("the memory cap needs Linux")
	}
	c := experiment.Sized[plan.Config]("")
	c.MemoryCap, c.Patients, c.Contestant, c.Requests = 1, 100, []string{plan.Naive}, 10
	h, err := plan.Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, planned := range h.Cells {
		if planned.Setup == plan.Shape && planned.Load == plan.Low && planned.Pattern == plan.Naive {
			if r, err := planned.Run(t.Context(), experiment.Trial{Seed: 1}); err != nil || !strings.Contains(r.Killed, "memory cap of 1 MiB") {
				t.Errorf("killed %q, %v", r.Killed, err)
			}
			return
		}
	}
	t.Fatal("no such cell")
}
