package loadgen

import (
	"runtime"
	"syscall"
	"time"
)

// virtualClock reports whether package time does not advance while the thread sleeps. Such a clock
// is simulated (testing/synctest), and only its own timers advance it.
func virtualClock() bool {
	before := time.Now()
	nanosleep(time.Microsecond)
	return !time.Now().After(before)
}

// preciseSleep gives the calling goroutine a thread of its own and returns a sleep that overshoots
// by microseconds and leaves the processor idle. Nothing is undone, because the thread ends with
// the goroutine.
func preciseSleep() func(time.Duration) {
	runtime.LockOSThread()
	const setTimerSlack = 29 // PR_SET_TIMERSLACK: how many nanoseconds the kernel may delay this thread's timers
	syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	if runtime.GOMAXPROCS(0) > 1 {
		return nanosleep
	}
	return func(d time.Duration) {
		runtime.Gosched() // the sleep would keep the only processor from the requests just started
		nanosleep(d)
	}
}

func nanosleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // if interrupted, the caller reads the clock
}
