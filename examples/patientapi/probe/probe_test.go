package probe

import (
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
	if u.PeakGoroutines < 500 {
		t.Errorf("peak %d goroutines", u.PeakGoroutines)
	}
	if u.GCCycles < 1 || u.GCShare < 0 || u.GCShare > 1 || u.GCPauseP99 <= 0 || u.GCPauseP99 > 60 {
		t.Errorf("%d collections, share %v, pause %v", u.GCCycles, u.GCShare, u.GCPauseP99)
	}
	if runtime.GOOS == "linux" && (u.CPUSeconds <= 0 || u.PeakRSS < 1<<20) {
		t.Errorf("%v s of processor time, %d bytes", u.CPUSeconds, u.PeakRSS)
	}
}
