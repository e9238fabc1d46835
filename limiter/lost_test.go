package limiter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A database hung, work ended by its deadlines, and most of it was parked by then. Ends of parked work were not
// counted, so that nothing was lost.
func TestParkedWorkThatIsLateIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{})
		for i := range 400 * 40 {
			time.Sleep(time.Second / 400)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = l.Do(ctx, func(ctx context.Context) error {
					if i > 400*5 {
						<-ctx.Done()
						return ctx.Err()
					}
					time.Sleep(5 * time.Millisecond)
					return nil
				})
			}()
			if i > 400*10 && i%400 == 0 {
				if s := l.Stats(); s.Lost < 0.9 {
					t.Errorf("%.2f is lost, and %d are parked: %s", s.Lost, s.Parked, s.State)
				}
			}
		}
		time.Sleep(time.Minute)
		atRest(t, l)
	})
}
