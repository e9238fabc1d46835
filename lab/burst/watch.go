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
		w, err := c.run(ctx, k.Pattern, pool)
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

// run runs a contestant and samples it from outside. Naive may be given the pool's run.
func (c Config) run(ctx context.Context, name string, pool *watcher) (*watcher, error) {
	return c.runWith(ctx, name, pool, patience)
}

func (c Config) runWith(ctx context.Context, name string, pool *watcher, patience time.Duration) (*watcher, error) {
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
	var peak uint64
	if pool != nil {
		peak = pool.out.Process.PeakRSS
	}
	w.MemoryCap, w.capped = c.memoryCap(experiment.ThisMachine().MemoryMiB, peak)
	process, err := contestant.Start(ctx, contestant.Spec{Role: roleBurst, Input: w.job, MemoryCap: uint64(w.MemoryCap) << 20, TimeCap: c.Time + patience + overdue}, new(bool))
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
	moments []moment      // one for each point
	last    sum           // at the previous point
	before  usage.Outside // likewise
	most    int           // goroutines
	lived   time.Duration
	out     results.Run
}

// moment is what was finished by then.
type moment struct {
	at   float64 // seconds
	done uint64
	took float64 // nanoseconds, of all of them together
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
		Goroutines: int(w.goroutines.Load()), RSS: u.RSS, InFlight: int(w.running.Load()), Queued: int(w.queued.Load()),
	}
	if w.Name == Naive || w.Name == Stopped { // which have one for each unfinished job, however old the last look is
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
	w.moments = append(w.moments, moment{at.At, now.done.Count(), now.done.Sum()})
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
			out.Extra["pool_latency_ms"] = then.took / float64(then.done) / 1e6
		}
	}
	if bound := w.bound.Load(); bound > 0 {
		out.Extra["allowed"] = float64(bound) + float64(w.Generators)
	}
	if s.counts[workSampled] > 0 && used.CPUSeconds > 0 {
		out.Extra["work_percent"] = 100 * s.workShare(&sum{}, used.CPUSeconds)
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
