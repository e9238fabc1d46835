package service

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

func TestEveryStepOfATimeLineSaysHowLongItsGoodAnswersTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took Latencies
		load := Load{Stretches: []Stretch{{Rate: 300, For: time.Second}, {Rate: 300, For: time.Second}}, Measured: 1, Seed: 1, watch: took.Add}
		from, _ := load.Window()
		slow := from.Add(500 * time.Millisecond) // from then on
		res, err := load.Send(t.Context(), func(_ context.Context, n uint64, _ bool) loadgen.Outcome {
			switch {
			case n%3 == 0:
				return loadgen.Rejected // not in it, however quick
			case time.Now().Before(slow):
				time.Sleep(12 * time.Millisecond)
			default:
				time.Sleep(40 * time.Millisecond)
			}
			return loadgen.OK
		})
		if err != nil {
			t.Fatal(err)
		}
		run := experiment.FromLoad(res)
		took.AddTo(run.Series)
		for _, p := range run.Series {
			quick, late := p.Took[15_000], p.Took[50_000]
			if quick+late != p.OK || len(p.Took) > 2 || p.At < .5 && late > 0 || p.At >= .6 && quick > 0 {
				t.Errorf("after %v s %d good answers took %v", p.At, p.OK, p.Took)
			}
		}
		if n := len(run.Series); n < 10 || run.Of("ok").Count < 100 {
			t.Errorf("%d steps, %d good answers", n, run.Of("ok").Count)
		}
	})
}

func TestALateSnapshotStillFindsItsStep(t *testing.T) {
	var took Latencies
	for i, after := range []int{130, 200, 460, 500, 512, 512} { // ms; two are lost, and the last comes at the end
		s := loadgen.Snapshot{Elapsed: time.Duration(after) * time.Millisecond}
		s.Latency.RecordN(int64(time.Millisecond), uint64(1)<<i)
		took.Add(s)
	}
	took.Add(loadgen.Snapshot{Elapsed: time.Hour}) // without an answer
	line := make([]results.Point, 5)
	took.AddTo(line)
	for i, want := range []map[int64]uint64{{1000: 1}, {1000: 2}, nil, {1000: 4}, {1000: 8 + 16 + 32}} {
		if !maps.Equal(line[i].Took, want) {
			t.Errorf("step %d has %v, want %v", i, line[i].Took, want)
		}
	}
}
