package usage

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var sink []byte

func TestUsageCountsWhatHappened(t *testing.T) { synctest.Test(t, testUsage) }

func testUsage(t *testing.T) {
	p := Start()
	for range 100 {
		sink = make([]byte, 1<<20)
	}
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() { <-release })
	}
	time.Sleep(2 * interval) // of virtual time: the watcher has looked
	close(release)
	wg.Wait()
	runtime.GC()
	u := p.Stop()
	if u.Mallocs < 100 || u.AllocBytes < 100<<20 {
		t.Errorf("%d objects, %d bytes; at least 100 and 100 MiB were allocated", u.Mallocs, u.AllocBytes)
	}
	if u.PeakGoroutines < 500 || u.PeakStacks < 490 || u.PeakStackBytes < 500*2048/2 {
		t.Errorf("peak %d goroutines, %d stacks of %d bytes", u.PeakGoroutines, u.PeakStacks, u.PeakStackBytes)
	}
	if u.GCShare < 0 || u.GCShare > 1 {
		t.Errorf("share of the collector %v", u.GCShare)
	}
	if runtime.GOOS == "linux" && (u.CPUSeconds <= 0 || u.PeakRSS < 1<<20) {
		t.Errorf("%v s of processor time, %d bytes", u.CPUSeconds, u.PeakRSS)
	}
}

func TestAProcessIsSeenFromOutside(t *testing.T) {
	o := Of(os.Getpid())
	if runtime.GOOS == "linux" && (o.RSS < 1<<20 || o.Switches == 0) {
		t.Errorf("this process, from outside: %+v", o)
	}
	if gone := Of(-1); gone != (Outside{}) {
		t.Errorf("no process: %+v", gone)
	}
}

func TestTheClocksRunWhileThisProcessComputes(t *testing.T) {
	before := CPU()
	x := 1
	took := ThreadTime(func() {
		for i := range 50_000_000 {
			x = x*31 + i
		}
		sink = make([]byte, x&1) // so that the compiler computes it
	})
	if took <= 0 || runtime.GOOS == "linux" && CPU()-before < took/2 {
		t.Errorf("the thread took %v, the process %v", took, CPU()-before)
	}
}
