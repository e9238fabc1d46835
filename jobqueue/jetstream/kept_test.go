package jetstream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
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
