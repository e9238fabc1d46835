package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/load/loadgen"
)

// liveView shows a load while it runs: a line in place on a terminal, a line every
// few seconds elsewhere, and if asked a line of CSV for each interval.
type liveView struct {
	env     *environment
	lines   *sink // of CSV; nil: none
	before  loadgen.Snapshot
	printed time.Duration // when the last line was that is not in place
}

const plainLines = 5 * time.Second // between them

func (v *liveView) show(s loadgen.Snapshot) {
	i := &interval{Snapshot: s, since: v.before}
	v.before = s
	if i.seconds() <= 0 {
		return
	}
	if v.lines != nil {
		fmt.Fprintln(v.lines, i.csv())
	}
	v.env.status(i.String())
	if v.env.width == 0 && s.Elapsed >= v.printed+plainLines {
		v.printed = s.Elapsed.Truncate(plainLines)
		fmt.Fprintln(v.env.stderr, i)
	}
}

// interval is what happened between two snapshots.
type interval struct {
	loadgen.Snapshot
	since loadgen.Snapshot
}

func (i *interval) seconds() float64 { return (i.Elapsed - i.since.Elapsed).Seconds() }

func (i *interval) count(o loadgen.Outcome) uint64 { return i.Outcomes[o] - i.since.Outcomes[o] }

// String is for people: rates of the interval, and how late it was sent.
func (i *interval) String() string {
	rate := func(n uint64) string { return fmt.Sprintf("%.0f/s", float64(n)/i.seconds()) }
	var b strings.Builder
	fmt.Fprintf(&b, "%v · sent %s · goodput %s", i.Elapsed.Round(100*time.Millisecond), rate(i.Sent-i.since.Sent), rate(i.count(loadgen.OK)))
	if i.Latency.Count() > 0 {
		fmt.Fprintf(&b, ", p99 %s ms", p99(&i.Latency))
	}
	for _, o := range []loadgen.Outcome{loadgen.Rejected, loadgen.Error, loadgen.Timeout} {
		if i.Outcomes[o] > 0 {
			fmt.Fprintf(&b, " · %v %s", o, rate(i.count(o)))
		}
	}
	if i.Lag.Count() > 0 {
		fmt.Fprintf(&b, " · send lag p99 %s ms", p99(&i.Lag))
	}
	fmt.Fprintf(&b, " · %d in flight", i.InFlight)
	return b.String()
}

// p99 is in milliseconds; empty without a value.
func p99(h *histogram.Histogram) string {
	if h.Count() == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(h.Quantile(0.99))/1e6)
}

func writeIntervalNames(w io.Writer) {
	fmt.Fprintln(w, "from_seconds,until_seconds,sent,ok,rejected,error,timeout,in_flight,goodput,p99_ms,send_lag_p99_ms")
}

// csv is the line of the interval. A figure that there is not is empty.
func (i *interval) csv() string {
	return fmt.Sprintf("%.3f,%.3f,%d,%d,%d,%d,%d,%d,%.1f,%s,%s", i.since.Elapsed.Seconds(), i.Elapsed.Seconds(), i.Sent-i.since.Sent,
		i.count(loadgen.OK), i.count(loadgen.Rejected), i.count(loadgen.Error), i.count(loadgen.Timeout),
		i.InFlight, float64(i.count(loadgen.OK))/i.seconds(), p99(&i.Latency), p99(&i.Lag))
}
