package jobqueuetest

import "time"

// longestWait bounds every wait of a check. Only a failing check waits that long.
const longestWait = time.Minute

// longestPause is the longest pause between two looks at a condition.
const longestPause = 20 * time.Millisecond

// until waits until cond is true.
func (w *world) until(what string, cond func() bool) {
	w.Helper()
	end := time.Now().Add(longestWait)
	for pause := time.Millisecond; !cond(); pause = min(2*pause, longestPause) {
		if time.Now().After(end) {
			w.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(pause)
	}
}

// wait receives a value from c, or fails the test.
func wait[T any](w *world, what string, c <-chan T) (v T) {
	w.Helper()
	limit := time.NewTimer(longestWait)
	defer limit.Stop()
	select {
	case v = <-c:
	case <-limit.C:
		w.Fatalf("waited in vain: %s", what)
	}
	return v
}
