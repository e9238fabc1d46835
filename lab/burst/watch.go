package burst

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// run runs a contestant and samples it from outside.
func (c Config) run(ctx context.Context, name string, burst time.Duration) (results.Run, error) {
	dir, err := os.MkdirTemp("", "spillway-burst-")
	if err != nil {
		return results.Run{}, err
	}
	defer os.RemoveAll(dir)
	w := &watcher{job: job{Config: c, Name: name, Burst: burst, Shared: filepath.Join(dir, "counters")}}
	var unshare func()
	if w.counters, unshare, err = contestant.Share[counters](w.Shared); err != nil {
		return results.Run{}, err
	}
	defer unshare()
	w.MemoryCap = cmp.Or(c.MemoryCap, experiment.ThisMachine().MemoryMiB/2)
	process, err := contestant.Start(ctx, contestant.Spec{Role: roleBurst, Input: w.job, MemoryCap: uint64(w.MemoryCap) << 20}, new(bool))
	if err != nil {
		return results.Run{}, err
	}
	tick := time.NewTicker(step)
	defer tick.Stop()
	for alive := true; alive; {
		select {
		case <-process.Done():
			alive = false
		case <-tick.C:
			w.point(usage.Of(process.PID()))
		}
	}
	used := results.Process{ReuseRate: -1}
	exit, err := process.Stop(ctx, &used)
	if err != nil {
		return results.Run{}, err
	}
	return w.result(used, exit), nil
}

// watcher records the time line of a contestant.
type watcher struct {
	job
	*counters
	series []results.Point
	last   sum           // at the previous point
	before usage.Outside // likewise
	most   int           // goroutines
	lived  time.Duration
}

func (w *watcher) point(u usage.Outside) {
	began := w.began.Load()
	if began == 0 || u.RSS == 0 || w.ended.Load() > 0 { // not started, or ended
		return
	}
	w.lived = time.Duration(time.Now().UnixNano() - began)
	now := w.sum()
	at := results.Point{
		At: w.lived.Seconds(), OK: now.done.Count() - w.last.done.Count(), Rejected: uint64(now.counts[jobsRefused] - w.last.counts[jobsRefused]),
		Goroutines: int(w.goroutines.Load()), RSS: u.RSS, InFlight: int(w.running.Load()), Queued: int(w.queued.Load()),
	}
	if w.Name == Naive { // which has one for each unfinished job, however old its last look is
		at.Goroutines = max(at.Goroutines, int(now.counts[jobsOffered])-int(now.done.Count()))
	}
	w.most = max(w.most, at.Goroutines)
	if u.Switches > w.before.Switches { // threads end, too
		at.Switches = u.Switches - w.before.Switches
	}
	if busy := now.busy - w.last.busy; busy > 0 {
		at.GC = (now.gc - w.last.gc) / busy
	} else if n := len(w.series); n > 0 { // no collection since
		at.GC = w.series[n-1].GC
	}
	if cpu := u.CPUSeconds - w.before.CPUSeconds; cpu > 0 {
		at.Work = min(1, max(0, now.workShare(&w.last, cpu))) // of few samples
	}
	w.series = append(w.series, at)
	w.last, w.before = now, u
}

// result is the final run, of a contestant that used nothing else if it was killed. Its
// unfinished jobs were lost.
func (w *watcher) result(used results.Process, exit contestant.Exit) results.Run {
	s := w.sum()
	elapsed, lost := time.Duration(w.ended.Load()), "timeout"
	if elapsed == 0 {
		elapsed, lost, used.CPUSeconds = w.lived, "error", w.before.CPUSeconds
	}
	elapsed = max(elapsed, time.Millisecond)
	offering := elapsed
	if end := time.Duration(w.offered.Load()); end > 0 {
		offering = max(w.Burst, end)
	}
	used.PeakGoroutines, used.PeakRSS, used.GCShare = max(used.PeakGoroutines, w.most), max(used.PeakRSS, exit.PeakRSS), s.gc/max(s.busy, 1)
	offered, refused, done := uint64(s.counts[jobsOffered]), uint64(s.counts[jobsRefused]), s.done.Count()
	missed := "" // why the burst was not offered as planned
	if reached := float64(offered) / offering.Seconds(); reached < 0.95*w.Rate {
		missed = fmt.Sprintf("generator-bound: %.0f a second were offered of %.0f; generators and contestant together got %.1f of %d processors",
			reached, w.Rate, used.CPUSeconds/elapsed.Seconds(), runtime.GOMAXPROCS(0))
	}
	out := results.Run{
		Elapsed: elapsed.Seconds(), Killed: exit.Killed, Offered: offered, Series: w.series, Process: used,
		Outcomes: []results.Outcome{
			{Kind: "ok", Count: done, Latency: &s.done},
			{Kind: "rejected", Count: refused, Latency: &s.no},
			{Kind: lost, Count: offered - refused - done, Latency: &histogram.Histogram{}},
		},
		Params: map[string]any{
			"burst_seconds": w.Burst.Seconds(), "generator": missed,
			"gomaxprocs": runtime.GOMAXPROCS(0), "machine_mib": experiment.ThisMachine().MemoryMiB,
		},
		Extra: map[string]float64{"work_ms": w.Wait.Seconds() * 1e3},
	}
	if bound := w.bound.Load(); bound > 0 {
		out.Extra["allowed"] = float64(bound) + float64(w.Generators)
	}
	if s.counts[workSampled] > 0 && used.CPUSeconds > 0 {
		out.Extra["work_percent"] = 100 * s.workShare(&sum{}, used.CPUSeconds)
	}
	if s.counts[sendSampled] > 0 {
		out.Extra["submit_percent"] = 100 * s.each(sendCPU, sendSampled) * float64(offered) / (offering.Seconds() * float64(runtime.GOMAXPROCS(0)))
	}
	return out
}
