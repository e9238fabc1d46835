package service

import (
	"time"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// Latencies are how long good answers took, between each two snapshots of a load.
type Latencies struct {
	seen  time.Duration // when the last snapshot was made
	parts []part
}

type part struct {
	middle time.Duration    // between its two snapshots
	took   map[int64]uint64 // as results.Point has it
}

// Add keeps what came since the snapshot before: it is for loadgen.Config.Progress.
func (l *Latencies) Add(s loadgen.Snapshot) {
	l.parts = append(l.parts, part{(l.seen + s.Elapsed) / 2, results.Took(&s.Latency)})
	l.seen = s.Elapsed
}

// AddTo adds them to a time line in steps of Step. Snapshots are made at the end of each
// step, on a busy machine somewhat later: what came between two belongs to the step in
// which the middle lies.
func (l *Latencies) AddTo(line []results.Point) {
	for _, p := range l.parts {
		if len(p.took) == 0 {
			continue
		}
		step := &line[min(int(p.middle/Step), len(line)-1)]
		if step.Took == nil {
			step.Took = map[int64]uint64{}
		}
		for bound, n := range p.took {
			step.Took[bound] += n
		}
	}
}
