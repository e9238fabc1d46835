package memory

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
)

// twin is the slow, simple model of core: one list of jobs, searched on each call.
type twin struct {
	jobs      []*twinJob
	seq       int
	overtaken int
	nextLow   int
}

type twinJob struct {
	key, state string
	level      int
	order      int       // position in the order of becoming ready
	due        time.Time // delayed
	id         uint64
	attempts   int
	run        uint64
	purged     bool
}

func (w *twin) in(state string) (found []*twinJob) {
	for _, j := range w.jobs {
		if j.state == state {
			found = append(found, j)
		}
	}
	return found
}

func (w *twin) ready(j *twinJob) {
	w.seq++
	j.state, j.order = "ready", w.seq
}

func (w *twin) wait(now time.Time, j *twinJob, after time.Duration) {
	if after > 0 {
		j.state, j.due = "delayed", now.Add(after)
		return
	}
	w.ready(j)
}

// promote makes due jobs ready.
func (w *twin) promote(now time.Time) {
	late := w.in("delayed")
	slices.SortFunc(late, func(a, b *twinJob) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.id, b.id)) })
	for _, j := range late {
		if !j.due.After(now) {
			w.ready(j)
		}
	}
}

// take returns the next job to run.
func (w *twin) take(inFlight int) *twinJob {
	all := w.in("ready")
	if len(all) == 0 || len(w.in("running")) >= inFlight {
		return nil
	}
	slices.SortFunc(all, func(a, b *twinJob) int { return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.order, b.order)) })
	highest, lowest := all[0].level, all[len(all)-1].level
	next := all[0]
	if w.overtaken++; w.overtaken == floorEvery && highest > lowest {
		w.nextLow %= highest
		for next.level == highest {
			if i := slices.IndexFunc(all, func(j *twinJob) bool { return j.level == w.nextLow }); i >= 0 {
				next = all[i]
			}
			w.nextLow = (w.nextLow + 1) % highest
		}
		w.overtaken = 0
	}
	if next.level == lowest {
		w.overtaken = 0
	}
	next.state = "running"
	next.attempts++
	return next
}

// driver applies the same operations to core and twin.
type driver struct {
	*testing.T
	core  *core
	twin  *twin
	now   time.Time
	names int
}

func (d *driver) enqueue(level int, delay time.Duration) {
	d.names++
	key := fmt.Sprint(d.names)
	duplicate, full := d.core.enqueue(d.now, jobqueue.Job{Key: key, Priority: spillway.Low + spillway.Priority(level), Delay: delay})
	if duplicate {
		d.Fatalf("%s is new", key)
	}
	if isFull := len(d.twin.jobs)-len(d.twin.in("gone")) >= d.core.cfg.MaxQueued; (full != nil) != isFull {
		d.Fatalf("full: %v, want %v", full, isFull)
	}
	if full != nil {
		return
	}
	j := &twinJob{key: key, level: level, id: d.core.lastID}
	d.twin.jobs = append(d.twin.jobs, j)
	d.twin.wait(d.now, j, delay)
	if again, _ := d.core.enqueue(d.now, jobqueue.Job{Key: key}); !again {
		d.Fatalf("%s is stored twice", key)
	}
}

func (d *driver) take() {
	got, want := d.core.take(d.now), d.twin.take(d.core.cfg.MaxInFlight)
	if (got == nil) != (want == nil) {
		d.Fatalf("took %v, want %v", got, want)
	}
	if got == nil {
		return
	}
	if got.job.Key != want.key || got.attempts != want.attempts {
		d.Fatalf("took %s, attempt %d; want %+v", got.job.Key, got.attempts, want)
	}
	want.run = got.run
}

func (d *driver) end(pick int, v engine.Settlement, lost bool) {
	running := d.twin.in("running")
	if len(running) == 0 {
		return
	}
	j := running[pick%len(running)]
	run := j.run
	if lost {
		v = engine.Settlement{Fate: engine.Retry}
		if j.attempts >= engine.Attempts(d.core.cfg.Policy) {
			v.Fate = engine.Bury
		}
		d.core.lose(d.now, run)
	} else {
		d.core.settle(d.now, run, v)
	}
	if d.core.settle(d.now, run, v) {
		d.Fatal("a run ended twice")
	}
	if v.Fate == engine.Defer {
		j.attempts--
	}
	switch {
	case v.Fate == engine.Bury:
		j.state = "dead"
	case v.Fate == engine.Finish || j.purged:
		j.state = "gone"
	default:
		d.twin.wait(d.now, j, v.After)
	}
}

func (d *driver) replay(pick int) {
	dead := d.twin.in("dead")
	if len(dead) == 0 {
		return
	}
	j := dead[pick%len(dead)]
	if !d.core.replay(d.now, j.id) || d.core.replay(d.now, j.id) {
		d.Fatalf("dead letter %d is replayed once", j.id)
	}
	j.id, j.attempts, j.purged = d.core.lastID, 0, false
	d.twin.ready(j)
}

func (d *driver) purge(dead bool) {
	states := []string{"dead"}
	if !dead {
		states = []string{"ready", "delayed"}
		for _, j := range d.twin.in("running") {
			j.purged = true
		}
	}
	n := 0
	for _, s := range states {
		for _, j := range d.twin.in(s) {
			j.state = "gone"
			n++
		}
	}
	if got := d.core.purge(d.now, dead); got != n {
		d.Fatalf("purged %d, want %d", got, n)
	}
}

func (d *driver) compare() {
	depth, _ := d.core.depths(d.now)
	due := 0
	for _, j := range d.twin.in("delayed") {
		if !j.due.After(d.now) {
			due++
		}
	}
	want := jobqueue.Depth{Ready: len(d.twin.in("ready")) + due, Delayed: len(d.twin.in("delayed")) - due, InFlight: len(d.twin.in("running"))}
	if dead := len(d.twin.in("dead")); depth != want || len(d.core.dead) != dead || d.core.count != depth.Ready+depth.Delayed+depth.InFlight+dead {
		d.Fatalf("%+v, %d dead, %d kept; want %+v and %d dead", depth, len(d.core.dead), d.core.count, want, dead)
	}
	if d.core.count == 0 && d.core.bytes != 0 {
		d.Fatalf("%d bytes of no jobs", d.core.bytes)
	}
}

func FuzzCore(f *testing.F) {
	f.Add([]byte{0, 9, 2, 200, 7, 3, 1, 1, 60, 5, 4, 130, 8, 6, 40})
	f.Add(slices.Repeat([]byte{0, 2, 2, 3}, 200))
	f.Fuzz(func(t *testing.T, steps []byte) {
		cfg, err := Config{MaxQueued: 300, MaxInFlight: 3, Policy: jobqueue.Policy{MaxAttempts: 3}}.filled()
		if err != nil {
			t.Fatal(err)
		}
		d := &driver{T: t, core: newCore(cfg), twin: &twin{}, now: time.Unix(1, 0)}
		for _, s := range steps[:min(len(steps), 800)] {
			arg := int(s) / 10
			switch s % 10 {
			case 0, 1:
				d.enqueue(arg%levels, time.Duration(arg/levels)*time.Millisecond)
			case 2, 3:
				d.take()
			case 4:
				d.end(arg, engine.Settlement{Fate: engine.Finish}, false)
			case 5:
				d.end(arg/4, engine.Settlement{Fate: engine.Fate(1 + arg%4), After: time.Duration(arg) * time.Millisecond, Reason: "r"}, false)
			case 6:
				d.end(arg, engine.Settlement{}, true)
			case 7:
				d.now = d.now.Add(time.Duration(arg) * time.Millisecond)
			case 8:
				d.replay(arg)
			default:
				if arg < 2 {
					d.purge(arg == 1)
				}
			}
			d.twin.promote(d.now)
			d.compare()
		}
	})
}
