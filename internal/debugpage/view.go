package debugpage

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// view is the page's data about one limiter.
type view struct {
	*picture
	id    string
	title string
	watch *watch
	age   func(at time.Duration) time.Duration // time since an event of the limiter

	found []finding // the first is the headline

	// Recent figures per second; NaN without an earlier look to compare with.
	offered, completed, rejected, would float64
	rejectedBy, wouldBy                 map[spillway.Reason]float64

	ended  map[limit.Outcome]uint64 // the latest ends
	kinds  []kindView               // of the last two minutes
	lately []kindView               // of the last ten to twenty seconds
	covers time.Duration            // time that the figures of the last two minutes cover

	wait, service *histogram.Histogram // of the last two minutes
}

func viewOf(i int, w *watch, now time.Time) view {
	v := view{picture: &w.now, id: fmt.Sprintf("limiter-%d", i+1), title: w.now.Name, watch: w}
	if strings.TrimSpace(v.title) == "" {
		v.title = fmt.Sprintf("limiter %d", i+1)
	}
	v.age = func(at time.Duration) time.Duration { return max(now.Sub(w.created.Add(at)), 0) }
	v.offered, v.completed, v.rejected, v.would = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	if before, d := w.from(recent); before != nil {
		a, b, s := &w.now.Stats, &before.Stats, d.Seconds()
		v.offered = float64(minus(a.Offered, b.Offered)) / s
		v.completed = float64(minus(a.Completed, b.Completed)) / s
		v.rejected = float64(minus(a.Rejected, b.Rejected)) / s
		v.would = float64(minus(a.WouldReject, b.WouldReject)) / s
		v.rejectedBy = rates(a.RejectedBy, b.RejectedBy, s)
		v.wouldBy = rates(a.WouldRejectBy, b.WouldRejectBy, s)
	}
	v.wait, v.service = w.times()
	v.ended, v.covers = w.endedLately(), w.covers()
	v.kinds, v.lately = w.kindsSince(time.Time{}), w.kindsSince(now.Add(-kindsEvery))
	v.found = v.findings()
	return v
}

// rates returns the growth of each count per second.
func rates(now, before map[spillway.Reason]uint64, seconds float64) map[spillway.Reason]float64 {
	r := map[spillway.Reason]float64{}
	for reason, n := range now {
		if d := minus(n, before[reason]); d > 0 {
			r[reason] = float64(d) / seconds
		}
	}
	return r
}

// most returns the reason with the highest rate, and whether there is a reason.
func most(rates map[spillway.Reason]float64) (worst spillway.Reason, any bool) {
	for reason, r := range rates {
		if !any || r > rates[worst] || r == rates[worst] && reason < worst {
			worst, any = reason, true
		}
	}
	return worst, any
}

// summary is one sentence over all limiters. Its figures are coarse, so that it changes only when there
// is news: a screen reader reads each change out.
func summary(views []view) string {
	if len(views) == 0 {
		return "No limiter was given to this page."
	}
	by := map[string][]string{} // names by word
	var words []string
	for _, v := range views {
		head := v.found[0]
		if head.mood == "calm" {
			continue
		}
		if by[head.word] == nil {
			words = append(words, head.word)
		}
		by[head.word] = append(by[head.word], v.title)
	}
	if len(words) == 0 {
		return "All is calm."
	}
	var all []string
	for _, w := range words {
		names := by[w]
		if len(names) > 3 {
			names = append(slices.Clone(names[:3]), fmt.Sprintf("%d more", len(names)-3))
		}
		all = append(all, fmt.Sprintf("%s: %s", strings.Join(names, ", "), w))
	}
	return strings.Join(all, "; ") + "."
}

// priorities lists the used priorities, the most important first.
func priorities(by map[spillway.Priority]limiter.PriorityStats) []spillway.Priority {
	var all []spillway.Priority
	for p := range by {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b spillway.Priority) int { return int(b) - int(a) })
	return all
}

// reasonsOf lists the counted reasons, the most frequent first.
func reasonsOf(by map[spillway.Reason]uint64) []spillway.Reason {
	var all []spillway.Reason
	for r, n := range by {
		if n > 0 {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b spillway.Reason) int {
		if by[a] != by[b] {
			if by[a] > by[b] {
				return -1
			}
			return 1
		}
		return int(a) - int(b)
	})
	return all
}

// meaning explains a reason in words.
func meaning(r spillway.Reason) string {
	switch r {
	case spillway.ReasonQueueFull:
		return "as many wait as may wait"
	case spillway.ReasonWaitTooLong:
		return "the wait was, or would have been, too long"
	case spillway.ReasonDeadlineTooClose:
		return "the deadline leaves no time for the work"
	case spillway.ReasonPreempted:
		return "more important work took its place in the queue"
	case spillway.ReasonMemory:
		return "the heap is close to its limit"
	case spillway.ReasonScheduler:
		return "goroutines wait too long for a processor"
	case spillway.ReasonSignal:
		return "a signal of yours is over its bound"
	case spillway.ReasonQuota:
		return "the caller's own share is used up"
	case spillway.ReasonBudget:
		return "this replica's share of a budget is used up, or over"
	case spillway.ReasonDraining:
		return "the intake is closed, work is being finished"
	case spillway.ReasonClosed:
		return "the limiter is closed"
	}
	return "a lack of capacity"
}
