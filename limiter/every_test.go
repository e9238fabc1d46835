package limiter

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
)

func TestEveryIsCalledOnceASecondWhileTheLimiterIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(2)})
		var offered []uint64
		stop := l.every(time.Second, func() { offered = append(offered, l.Stats().Offered) })
		use := func() {
			acquire(t, l).Done(nil)
		}
		use() // too early
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			use()
		}
		if len(offered) != 5 {
			t.Errorf("in five seconds: %v", offered)
		}
		time.Sleep(time.Hour) // nobody uses the limiter
		use()
		use()
		if len(offered) != 6 {
			t.Errorf("after an hour: %v", offered)
		}
		stop()
		stop()
		time.Sleep(time.Minute)
		use()
		if len(offered) != 6 {
			t.Errorf("after stop: %v", offered)
		}
		atRest(t, l)
	})
}
