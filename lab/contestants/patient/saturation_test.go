package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/saturation"
)

func TestEveryContestantOfSaturationLetsWorkThrough(t *testing.T) {
	for _, name := range []string{saturation.None, saturation.SemaphoreTry, saturation.Failsafe, saturation.Spillway} {
		g, err := saturationGuard(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("tried and failed")
		if err := g.Do(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) || g.Running()+g.Waiting() != 0 {
			t.Errorf("%s: %v, %d running, %d waiting", name, err, g.Running(), g.Waiting())
		}
		g.Close()
	}
	if _, err := saturationGuard("magic", 2); err == nil {
		t.Error("an unknown contestant was made")
	}
}

func TestEachResourceDoesItsWork(t *testing.T) {
	for _, name := range []string{saturation.Processor, saturation.Around, saturation.Collector} {
		work, done, err := scarcity(t.Context(), saturation.Job{Resource: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := work(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		done()
	}
	if garbage(4) != 0+1+2+3 {
		t.Errorf("the sum of four is %d", garbage(4))
	}
	if _, _, err := scarcity(t.Context(), saturation.Job{Resource: "network"}); err == nil {
		t.Error("an unknown resource was made")
	}
}

func TestASmallSessionOfSaturationAddsUp(t *testing.T) {
	c := experiment.Sized[saturation.Config]("quick")
	c.MostLag = time.Minute // on a busy machine
	c.Contestant = []string{saturation.Spillway}
	c.Resource = []string{saturation.Around, saturation.HotRows, saturation.Sort}
	c.Postgres = server(t)
	c.WarmUp, c.Time = 50*time.Millisecond, 100*time.Millisecond
	_, runs := session(t, saturation.Experiment, &c)
	if want := 3 * 2 * 2; len(runs) != want { // three resources at two loads, a contestant and its twin
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	for _, r := range runs {
		sum := uint64(0)
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		if r.Failed != "" || r.Killed != "" || sum != r.Offered || r.Of("error").Count > 0 {
			t.Errorf("%s %s %s: failed %q, killed %q, offered %d, outcomes %d, errors %d", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed, r.Offered, sum, r.Of("error").Count)
		}
	}
}
