package workerpool

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	awaits "github.com/spillway-go/spillway/internal/await"
)

// The comment of Job states that a job that ends its goroutine also ends the thread that it locked.
func TestALockedThreadEndsWithTheGoroutineOfItsJob(t *testing.T) {
	p := pool(t, Config{MaxWorkers: 1, OnDone: func(Result) {}})
	locked := make(chan int, 1)
	err := p.Submit(t.Context(), func(context.Context) error {
		runtime.LockOSThread()
		locked <- syscall.Gettid()
		runtime.Goexit()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tainted := awaits.Receive(t, "the thread of the job", locked)
	if tainted != os.Getpid() { // the main thread of the process does not end; it parks
		awaits.True(t, "the end of the thread", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tainted))
			return os.IsNotExist(err)
		})
	}
	thread, err := Do(t.Context(), p, func(context.Context) (int, error) { return syscall.Gettid(), nil })
	if err != nil || thread == tainted {
		t.Errorf("%v: the next job ran on thread %d, which was locked: %d", err, thread, tainted)
	}
}
