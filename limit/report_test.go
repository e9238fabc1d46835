package limit

import (
	"testing"
	"time"
)

// mute is a law that is no Reporter.
type mute struct{}

func (*mute) Limit() int                  { return 3 }
func (*mute) Admit(time.Duration, Load)   {}
func (*mute) Observe(s Sample, load Load) {}

func TestALawThatDoesNotReportIsNamedByItsType(t *testing.T) {
	r := ReporterOf(&mute{})
	if r.Name() != "limit.mute" || r.State() != "limit.mute reports no state" || r.Why() != "decided by limit.mute" {
		t.Errorf("%q, %q, %q", r.Name(), r.State(), r.Why())
	}
	law := NewFixed(1)
	if ReporterOf(law) != Reporter(law) {
		t.Error("a law that reports speaks for itself")
	}
}

func TestTheLogKeepsTheLastChangesAndMergesSteps(t *testing.T) {
	var l Log
	if got := l.All(); len(got) != 0 {
		t.Fatalf("empty, and remembers %+v", got)
	}
	l.Add(Decision{1, 10, 11, "up"})
	l.Add(Decision{2, 11, 12, "up"})
	l.Add(Decision{3, 12, 9, "up"})   // another direction
	l.Add(Decision{4, 9, 8, "down"})  // another reason
	l.Add(Decision{5, 20, 3, "down"}) // does not start where the last one ended
	want := []Decision{{2, 10, 12, "up"}, {3, 12, 9, "up"}, {4, 9, 8, "down"}, {5, 20, 3, "down"}}
	same(t, l.All(), want)
	for i := range 10 {
		l.Add(Decision{time.Duration(10 + i), i % 2, 1 - i%2, "to and fro"})
	}
	all := l.All()
	if len(all) != 8 || all[0].At != 12 || all[7].At != 19 {
		t.Fatalf("want the last eight, oldest first: %+v", all)
	}
}

func same(t *testing.T, got, want []Decision) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

// TestTheLogTellsTheStory shows why steps are merged. A law that grows in small steps would fill
// the log with them, and the reason of the last cut would be lost.
func TestTheLogTellsTheStory(t *testing.T) {
	law := must(NewAIMD(AIMDConfig{}))
	m := newModel(law, 20, 50*time.Millisecond)
	m.deadline = 100 * time.Millisecond
	var log Log
	last := law.Limit()
	m.until(time.Minute, func() bool {
		if n := law.Limit(); n != last {
			log.Add(Decision{m.now, last, n, law.Why()})
			last = n
		}
		return false
	})
	all := log.All()
	if len(all) != 8 {
		t.Fatalf("%d decisions, want the last 8", len(all))
	}
	for i, d := range all[1:] {
		if grew, before := d.To > d.From, all[i].To > all[i].From; grew && before {
			t.Errorf("growth is told in steps: %+v", all)
		}
	}
}
