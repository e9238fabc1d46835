package gate

import (
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// All gates share what stands for entries that do not exist yet. If one gate changed it, all would.
func TestMain(m *testing.M) {
	code := m.Run()
	if unmeasured != (lately{settles: demandSettle, bears: unbearable}) || noBounds != (Bounds{}) ||
		!reflect.DeepEqual(noShortage, shortage{floor: floor{every: Floor - 1}}) {
		fmt.Println("FAIL: a gate has changed what all gates share")
		code = 1
	}
	os.Exit(code)
}

// A gate without trouble has no room for refusals, waiters and life tables.
func TestAGateAllocatesWhatItNeeds(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: 1, MaxWait: time.Second})
	at := time.Duration(0)
	serve := func(o limit.Outcome) {
		at += demandWindow
		var w Work
		if !g.Enter(at, &Arrival{Cost: 1, Deadline: at + 1}, &w) {
			t.Fatal("refused")
		}
		g.EndWork(at+1, &w, o)
	}
	if serve(limit.Success); g.lately != &unmeasured || g.shortage != &noShortage || g.life != nil {
		t.Error("something is allocated for the first work")
	}
	if serve(limit.Success); g.lately == &unmeasured || g.shortage != &noShortage || g.life != nil {
		t.Error("a window is measured, and nothing is short")
	}
	if serve(limit.Deadline); g.life == nil {
		t.Error("a deadline has ended work, and there is no life table")
	}
	g.Arrive(at+2, Arrival{Cost: 1, Deadline: Never}, nil)
	if g.shortage != &noShortage {
		t.Error("work was admitted, and something is short")
	}
	if d := g.Arrive(at+2, Arrival{Cost: 1, Deadline: Never}, nil); d.Action != Reject || g.shortage == &noShortage {
		t.Errorf("%+v, and the refusal has no place", d)
	}
	if c := g.Counts(); c.Rejected() != 1 {
		t.Errorf("%+v", c)
	}
}
