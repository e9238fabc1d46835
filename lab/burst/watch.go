package burst

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// inOrder runs contestants. Those that follow the published pool are given its run.
func (c Config) inOrder(ctx context.Context, keys []ledger.Key) (runs []results.Run, err error) {
	var pool *watcher
	for _, k := range keys {
		w, err := c.run(ctx, k.Pattern, pool, patience)
		if err != nil {
			return nil, err
		}
		if k.Pattern == Published {
			pool = w
		}
		runs = append(runs, w.out)
	}
	return runs, nil
}

// enough is how many times the memory of the pool shows that naive takes ten times as much.
const enough = 11

// memoryCap is the memory cap of naive in MiB, on a machine with so much memory, after a
// pool that took up to so many bytes (0: none was run), and how the cap came about.
func (c Config) memoryCap(machineMiB int, pool uint64) (mib int, what string) {
	mib, what = machineMiB/2, "half of the machine's memory"
	if c.MemoryCap > 0 {
		mib, what = c.MemoryCap, "as set"
	} else if most := int(enough * pool >> 20); 0 < most && most < mib {
		mib, what = most, byPool
	}
	if pool > 0 {
		what += fmt.Sprintf(", %.1f times the peak of the pool", float64(mib<<20)/float64(pool))
	}
	return mib, what
}

const byPool = "made from what the pool took"

// overdue is how long a contestant may take to end after the burst. On a slow machine millions of
// goroutines keep a process from ending for a minute.
const overdue = 15 * time.Second

// overdueNaive is overdue for naive after a pool. What naive did in the burst is counted by then.
const overdueNaive = 3 * time.Second

// run runs a contestant and samples it from outside. Naive may be given the pool's run.
func (c Config) run(ctx context.Context, name string, pool *watcher, patience time.Duration) (*watcher, error) {
	dir, err := os.MkdirTemp("", "spillway-burst-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	w := &watcher{job: job{Config: c, Name: name, Shared: filepath.Join(dir, "counters"), Patience: patience}, pool: pool}
	var unshare func()
	if w.counters, unshare, err = contestant.Share[counters](w.Shared); err != nil {
		return nil, err
	}
	defer unshare()
	peak, late := uint64(0), overdue
	if pool != nil {
		peak, late = pool.out.Process.PeakRSS, overdueNaive
	}
	w.MemoryCap, w.capped = c.memoryCap(experiment.ThisMachine().MemoryMiB, peak)
	process, err := contestant.Start(ctx, contestant.Spec{Role: roleBurst, Input: w.job, MemoryCap: uint64(w.MemoryCap) << 20, TimeCap: c.Time + patience + late}, new(bool))
	if err != nil {
		return nil, err
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
		return nil, err
	}
	w.out = w.result(used, exit)
	return w, nil
}

// watcher records the time line of a contestant.
type watcher struct {
	job
	*counters
	pool    *watcher // that was run before in the same repeat; may be nil
	capped  string   // how the memory cap came about
	series  []results.Point
	moments []moment // one for each point
	last    sum      // at the previous point
	cpu     float64  // seconds, likewise
	most    int      // goroutines
	lived   time.Duration
	out     results.Run
}

// moment is what was finished by then, and its mean latencies in ms.
type moment struct {
	at              float64 // seconds
	done            uint64
	reported, since float64 // from the start of a job, and from its submission
}

// by is what was finished by then.
func (w *watcher) by(at float64) (m moment) {
	for _, next := range w.moments {
		if next.at <= at {
			m = next
		}
	}
	return m
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
		Goroutines: int(w.goroutines.Load()), RSS: u.RSS,
	}
	if w.Name == Naive || w.Name == Stopped { // which have one for each unfinished job, however old the last look is
		at.Goroutines = max(at.Goroutines, int(now.counts[jobsOffered])-int(now.done.Count()))
	}
	w.most = max(w.most, at.Goroutines)
	w.series = append(w.series, at)
	w.moments = append(w.moments, moment{at.At, now.done.Count(), now.reported(), now.trueLatency(w.lived)})
	w.last, w.cpu = now, u.CPUSeconds
}

// result is the final run, of a contestant that used nothing else if it was killed. Its
// unfinished jobs were lost.
func (w *watcher) result(used results.Process, exit contestant.Exit) results.Run {
	s := w.sum()
	elapsed, lost := time.Duration(w.ended.Load()), "timeout"
	if elapsed == 0 {
		elapsed, lost, used.CPUSeconds = w.lived, "error", w.cpu
	}
	elapsed = max(elapsed, time.Millisecond)
	used.PeakGoroutines, used.PeakRSS, used.GCShare = max(used.PeakGoroutines, w.most), max(used.PeakRSS, exit.PeakRSS), s.gc/max(s.busy, 1)
	offered, refused, done := uint64(s.counts[jobsOffered]), uint64(s.counts[jobsRefused]), s.done.Count()
	out := results.Run{
		Elapsed: elapsed.Seconds(), Killed: exit.Killed, Offered: offered, Series: w.series, Process: used,
		Outcomes: []results.Outcome{
			{Kind: "ok", Count: done, Latency: &s.done},
			{Kind: "rejected", Count: refused, Latency: &s.no},
			{Kind: lost, Count: offered - refused - done, Latency: &histogram.Histogram{}},
		},
		Params: map[string]any{
			"burst_seconds": w.Time.Seconds(), "per_processor": w.Rate / float64(runtime.GOMAXPROCS(0)), "cap": w.capped,
			"gomaxprocs": runtime.GOMAXPROCS(0), "machine_mib": experiment.ThisMachine().MemoryMiB,
		},
		Extra: map[string]float64{"work_ms": w.Wait.Seconds() * 1e3},
	}
	if w.Name == Stopped { // without a schedule
		out.Params["generator"] = fmt.Sprintf("offered %d jobs in %.1f s, at the published pace", offered, elapsed.Seconds())
	} else {
		w.missed(&out)
	}
	if w.pool != nil {
		then := w.pool.by(out.Elapsed)
		out.Extra["pool_finished"] = float64(then.done)
		if then.done > 0 {
			out.Extra["pool_reported_ms"], out.Extra["pool_true_ms"] = then.reported, then.since
		}
	}
	if done > 0 {
		out.Extra["reported_ms"] = s.reported()
	}
	if offered > refused {
		out.Extra["true_ms"] = s.trueLatency(elapsed)
	}
	if bound := w.bound.Load(); bound > 0 {
		out.Extra["allowed"] = float64(bound) + 2*float64(w.Generators)
	}
	if s.counts[workSampled] > 0 && used.CPUSeconds > 0 {
		out.Extra["work_percent"] = 100 * s.workShare(used.CPUSeconds)
	}
	if s.counts[sendSampled] > 0 {
		offering := min(elapsed, max(w.Time, time.Duration(w.offered.Load())))
		out.Extra["submit_percent"] = 100 * s.each(sendCPU, sendSampled) * float64(offered) / (offering.Seconds() * float64(runtime.GOMAXPROCS(0)))
	}
	return out
}

// missed counts what was not offered in time: late, or not at all. More than a twentieth
// of it is said, and whether the contestant might have finished some of what was missed.
func (w *watcher) missed(out *results.Run) {
	end := w.Time
	if w.ended.Load() == 0 {
		end = max(0, w.lived-lateAfter)
	}
	due := w.due(end)
	late := w.sum().counts[jobsLate]
	never := max(0, due-int64(out.Offered))
	out.Extra["missed"] = float64(late + never)
	if 20*(late+never) <= due {
		return
	}
	share := func(n int64) float64 { return 100 * float64(n) / float64(due) }
	out.Params["generator"] = fmt.Sprintf("generator-bound: of %d jobs %.0f %% were offered more than %d ms late and %.0f %% not at all; generators and contestant together got %.1f of %d processors",
		due, share(late), lateAfter.Milliseconds(), share(never), out.Process.CPUSeconds/out.Elapsed, runtime.GOMAXPROCS(0))
	// Who refused or left most of what was offered had too much all the time, and would not have finished
	// more of a larger offer.
	out.Params["starved"] = 2*out.Of("ok").Count > out.Offered
}
