package jetstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

// A job was deferred while the engine was away. When the engine comes back, it has given the job to
// another worker. Running the job here too would run it twice.
func TestAMessageThatCouldNotBeReportedIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := true
		k := keeper{connected: func() bool { return up }, silence: 3 * time.Second}
		old, fresh := &nats.Msg{}, &nats.Msg{}
		k.add(old)
		for range 10 {
			time.Sleep(time.Second)
			k.report()
		}
		if k.add(old); k.lost(old) {
			t.Error("lost while it was reported")
		}
		up = false
		time.Sleep(2 * time.Second)
		k.report()
		k.add(fresh)
		time.Sleep(2 * time.Second)
		k.add(old) // deferred once more
		up = true
		k.report()
		if !k.lost(old) || k.lost(fresh) {
			t.Errorf("old lost: %t, fresh lost: %t", k.lost(old), k.lost(fresh))
		}
		if k.drop(old); !k.lost(old) {
			t.Error("what is not kept is not lost")
		}
	})
}

// The engine takes a hand-back from anybody. A process that had stalled handed back slots that were
// others' by then: the engine gave each to a third process, and more than MaxInFlight handlers ran for
// as long as there was work.
func TestALostSlotIsNotHandedBack(t *testing.T) {
	q := open(t, Config{MaxInFlight: 1})
	kept := keeper{silence: -1} // all is lost
	h := slotHolder{q: q, kept: &kept}
	p := q.pull(q.names.slots, slotConsumer)
	var held *slot
	await.True(t, "a slot", func() bool { // the server counts slots a moment after it has stored them
		check(t, p.now(1, func(m *nats.Msg) { held = h.slot(m) }))
		return held != nil
	})
	held.giveBack()
	kept.add(held.msg)
	h.back(held)
	if h.check(); h.free() > 0 {
		t.Error("a lost slot is used")
	}
	check(t, p.wait(within(t), func(*nats.Msg) { t.Error("the engine has given the slot to another") }))
}

// A job that is lost while it waits in a process is another worker's. It ran here too, and what was
// told to the engine concerned the run of the other.
func TestALostJobIsNeitherRunNorHandedBack(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Key: "a"})
	w := &worker{q: q, ctx: t.Context(), kept: keeper{silence: -1}, // all is lost
		handler: func(context.Context, *jobqueue.Delivery) error { t.Error("the job runs"); return nil }}
	held := q.receive(taken(t, q), time.Now())
	for i, tell := range []func(){func() { w.run(held) }, func() { w.giveBack(held) }, func() { w.putOff(held, time.Millisecond) }} {
		w.kept.add(held.msg)
		tell()
		if n := q.counters.lost.Load(); n != uint64(i+1) {
			t.Errorf("%d are lost", n)
		}
	}
	if h, err := q.past(within(t), held.id); err != nil || h.version != 0 {
		t.Errorf("put on record: %+v, %v", h, err)
	}
}
