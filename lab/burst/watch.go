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
	"github.com/spillway-go/spillway/lab/results"
)

// run runs a contestant and samples it from outside.
func (c Config) run(ctx context.Context, name string) (results.Run, error) {
	dir, err := os.MkdirTemp("", "spillway-burst-")
	if err != nil {
		return results.Run{}, err
	}
	defer os.RemoveAll(dir)
	j := job{
		Contestant: name, Rate: c.Rate, Generators: c.Generators, Burst: c.Burst, Work: c.Work, Patience: patience,
		Shared: filepath.Join(dir, "counters"),
	}
	shared, err := share(j.Shared)
	if err != nil {
		return results.Run{}, err
	}
	defer unshare(shared)
	w := &watcher{job: j, counters: shared}
	process, err := contestant.Start(ctx, contestant.Spec{Role: roleBurst, Input: j, MemoryCap: c.cap()}, new(bool))
	if err != nil {
		return results.Run{}, err
	}
	w.until(process)
	var r report
	exit, err := process.Stop(ctx, &r)
	if err != nil {
		return results.Run{}, err
	}
	out := w.result(r)
	out.Killed = exit.Killed
	out.Process.PeakRSS = max(r.Usage.PeakRSS, exit.PeakRSS)
	out.Params["memory_cap_mib"] = c.cap() >> 20
	return out, nil
}

// watcher records the time line of a contestant.
type watcher struct {
	job
	*counters
	series []results.Point
	last   sum  // at the previous point
	before seen // likewise
	most   int  // goroutines
	lived  time.Duration
}

func (w *watcher) until(process *contestant.Process) {
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-process.Done():
			return
		case <-tick.C:
			w.point(seenOf(process.PID()))
		}
	}
}

func (w *watcher) point(u seen) {
	began := w.began.Load()
	if began == 0 || u.rss == 0 || w.ended.Load() > 0 { // not started, or ended
		return
	}
	w.lived = time.Duration(time.Now().UnixNano() - began)
	now := w.sum()
	at := results.Point{
		At: w.lived.Seconds(), OK: now.done.Count() - w.last.done.Count(), Rejected: now.refused - w.last.refused,
		Goroutines: w.alive(now, w.goroutines.Load()), RSS: u.rss,
		InFlight: int(w.running.Load()), Queued: int(w.queued.Load()),
	}
	w.most = max(w.most, at.Goroutines, int(w.mostGoroutines.Load()))
	if u.switches > w.before.switches { // threads end, too
		at.Switches = u.switches - w.before.switches
	}
	if busy := now.busy - w.last.busy; busy > 0 {
		at.GC = (now.gc - w.last.gc) / busy
	} else if n := len(w.series); n > 0 { // no collection since
		at.GC = w.series[n-1].GC
	}
	if cpu := u.cpu - w.before.cpu; cpu > 0 {
		at.Work = workShare(now.workSeconds()-w.last.workSeconds(), cpu, now.assist-w.last.assist, now.busy-w.last.busy)
	}
	w.series = append(w.series, at)
	w.last, w.before = now, u
}

// alive is the number of goroutines at the contestant's last sample; for one that
// starts a goroutine for each job, at least the number of unfinished jobs.
func (w *watcher) alive(s sum, seen int64) int {
	if w.Contestant == Naive {
		return max(int(seen), int(s.offered-s.done.Count()))
	}
	return int(seen)
}

// workShare is the jobs' share of the processor time, without what they did for the
// collector. The runtime counts elapsed time, which on a busy machine is more than
// the processor time, so its shares are used and not its seconds.
func workShare(work, cpu, assist, busy float64) float64 {
	part := work / cpu
	if busy > 0 {
		part -= assist / busy
	}
	return min(1, max(0, part))
}

// result is the final run, with an empty report if the contestant was killed. Its
// unfinished jobs were lost.
func (w *watcher) result(r report) results.Run {
	s := w.sum()
	elapsed, cpu, lost := w.lived, w.before.cpu, "error"
	if end := time.Duration(w.ended.Load()); end > 0 {
		elapsed, cpu, lost = end, r.Usage.CPUSeconds, "timeout"
	}
	elapsed = max(elapsed, time.Millisecond)
	offering := elapsed
	if end := time.Duration(w.counters.offered.Load()); end > 0 {
		offering = max(w.Burst, end)
	}
	out := results.Run{
		Elapsed: elapsed.Seconds(), Offered: s.offered, Lag: &s.lag, Series: w.series,
		Outcomes: []results.Outcome{
			{Kind: "ok", Count: s.done.Count(), Latency: &s.done},
			{Kind: "rejected", Count: s.refused, Latency: &s.no},
			{Kind: lost, Count: s.offered - s.refused - s.done.Count(), Latency: &histogram.Histogram{}},
		},
		Params: map[string]any{
			"rate": w.Rate, "generators": w.Generators, "burst_seconds": w.Burst.Seconds(), "work_bytes": w.Work.Bytes,
			"work_ms": float64(w.Work.Wait) / 1e6, "max_workers": int(w.bound.Load()),
			"generator": w.reached(s, float64(s.offered)/offering.Seconds(), cpu/elapsed.Seconds()),
		},
		Process: results.Process{
			Mallocs: r.Usage.Mallocs, AllocBytes: r.Usage.AllocBytes, CPUSeconds: cpu, GCPauseP99: r.Usage.GCPauseP99,
			PeakGoroutines: max(r.Usage.PeakGoroutines, w.most), ReuseRate: -1,
		},
		Extra: map[string]float64{
			"reached_rate": float64(s.offered) / offering.Seconds(), "work_us": 1e6 * s.workSeconds() / float64(max(s.taken, 1)),
			"cpus": cpu / elapsed.Seconds(),
		},
	}
	if reuses(w.Contestant) {
		out.Process.ReuseRate = r.ReuseRate
	}
	if s.busy > 0 {
		out.Process.GCShare = s.gc / s.busy
	}
	if cpu > 0 {
		out.Extra["work_share"] = workShare(s.workSeconds(), cpu, s.assist, s.busy)
	}
	if s.sendSampled > 0 {
		out.Extra["submit_ns"] = float64(s.sendCPU) / float64(s.sendSampled)
		out.Extra["submit_share"] = s.sendSeconds() / (offering.Seconds() * float64(runtime.GOMAXPROCS(0)))
	}
	switches := uint64(0)
	for _, p := range w.series {
		switches += p.Switches
	}
	out.Extra["switches_per_second"] = float64(switches) / elapsed.Seconds()
	if r.Late != "" {
		out.Params["late"] = r.Late
	}
	return out
}

// enough is the share of the rate that counts as offered.
const enough = 0.95

// reached says why the burst was not offered as planned; empty if it was.
func (w *watcher) reached(s sum, rate, cpus float64) string {
	if rate >= enough*w.Rate {
		return ""
	}
	why := fmt.Sprintf("generator-bound: %.0f a second were offered of %.0f", rate, w.Rate)
	if w.Contestant == Published {
		why += "; a submission parks its generator until it is accepted or its timeout fires"
	}
	procs := runtime.GOMAXPROCS(0)
	if cpus > 0.9*float64(procs) {
		return why + fmt.Sprintf("; all %d processors were busy with generators and contestant together", procs)
	}
	return why + fmt.Sprintf("; generators and contestant together got %.1f of %d processors, and a generator ran %v late at the median",
		cpus, procs, time.Duration(s.lag.Quantile(.5)).Round(100*time.Microsecond))
}
