package laws

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// mute is a law that is no limit.Reporter.
type mute struct{}

func (*mute) Limit() int                              { return 3 }
func (*mute) Admit(time.Duration, limit.Load)         {}
func (*mute) Observe(s limit.Sample, load limit.Load) {}

func TestALawThatDoesNotReportIsNamedByItsType(t *testing.T) {
	r := ReporterOf(&mute{})
	if r.Name() != "laws.mute" || r.State() != "laws.mute reports no state" || r.Why() != "decided by laws.mute" {
		t.Errorf("%q, %q, %q", r.Name(), r.State(), r.Why())
	}
	law := limit.NewFixed(1)
	if ReporterOf(law) != law.(limit.Reporter) {
		t.Error("a law that reports speaks for itself")
	}
}

func TestTheLogKeepsTheLastChangesAndMergesSteps(t *testing.T) {
	var l Log
	if got := l.All(); len(got) != 0 {
		t.Fatalf("empty, and remembers %+v", got)
	}
	l.Add(limit.Decision{At: 1, From: 10, To: 11, Why: "up"})
	l.Add(limit.Decision{At: 2, From: 11, To: 12, Why: "up"})
	l.Add(limit.Decision{At: 3, From: 12, To: 9, Why: "up"})   // another direction
	l.Add(limit.Decision{At: 4, From: 9, To: 8, Why: "down"})  // another reason
	l.Add(limit.Decision{At: 5, From: 20, To: 3, Why: "down"}) // does not start where the last one ended
	want := []limit.Decision{{At: 2, From: 10, To: 12, Why: "up"}, {At: 3, From: 12, To: 9, Why: "up"}, {At: 4, From: 9, To: 8, Why: "down"}, {At: 5, From: 20, To: 3, Why: "down"}}
	if got := l.All(); !slices.Equal(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range 10 {
		l.Add(limit.Decision{At: time.Duration(10 + i), From: i % 2, To: 1 - i%2, Why: "to and fro"})
	}
	all := l.All()
	if len(all) != 8 || all[0].At != 12 || all[7].At != 19 {
		t.Fatalf("want the last eight, oldest first: %+v", all)
	}
}

// TestTheLogTellsTheStory shows why steps are merged. A law that grows in small steps would fill
// the log with them, and the reason of the last cut would be lost.
func TestTheLogTellsTheStory(t *testing.T) {
	law, err := limit.NewAIMD(limit.AIMDConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var log Log
	for at := time.Duration(1); at < 10_000; at++ {
		before := law.Limit()
		s := limit.Sample{Seq: uint64(at), Start: at, End: at + 1}
		if before >= 25 {
			s.Outcome = limit.Overload
		}
		law.Admit(at, limit.Load{InFlight: before})
		law.Observe(s, limit.Load{InFlight: before})
		if n := law.Limit(); n != before {
			log.Add(limit.Decision{At: at, From: before, To: n, Why: ReporterOf(law).Why()})
		}
	}
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
