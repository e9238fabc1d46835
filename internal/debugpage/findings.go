package debugpage

import (
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// finding is something that the page says about a limiter.
type finding struct {
	mood string // calm, busy, bad or off: the colour of the word
	word string // what is found, in a few words
	todo string // what to do, in the words of the runbook; empty: nothing
	see  string // heading of the runbook
	key  string // what is found, without figures and names
}

func found(mood, word, todo, see string) finding {
	return finding{mood: mood, word: word, todo: todo, see: see}
}

// runbook is where findings link to.
const runbook = "https://github.com/spillway-go/spillway/blob/main/docs/operate/runbook.md"

const (
	manyEnds  = 20   // ends from which a share of them is shown
	muchFails = 0.1  // share from which failures come before a shortage, which may only follow from them
	someFails = 0.02 // share from which failures are told
	manyLeave = 0.5  // share of callers that leave from which they are told
	fewEnds   = 5    // ends from which more than half of them are shown
	hardGC    = 0.25 // share of the processors from which the collector is told
)

// findings returns all that is to be told, causes before what may follow from them. The first is the
// headline. There is at least one.
func (v *view) findings() (all []finding) {
	if v.Mode == limiter.Off {
		return []finding{{mood: "off", word: "off"}}
	}
	if !v.open {
		return []finding{{mood: "off", word: "intake closed"}}
	}
	for _, check := range []struct {
		key string
		of  func() finding
	}{
		{"leak", v.leaking}, {"stall", v.stalls}, {"loss", v.loses}, {"failure", v.fails}, {"collector", v.collects}, {"processors", v.lacksProcessors}, {"hog", v.hogged},
		{"refusal", v.refuses}, {"failure", v.failsSome}, {"dry run", v.dry}, {"pressure", v.pressed}, {"slower", v.slows}, {"clients", v.slowClients}, {"parked", v.parks}, {"wait", v.waits},
	} {
		if f := check.of(); f.word != "" {
			f.key = check.key
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		all = []finding{{mood: "calm", word: "calm"}}
	}
	return all
}

// leaking tells of permits that are overdue, and that hold half of the slots in use or more.
func (v *view) leaking() finding {
	if n := len(v.Leaks); n == 0 || 2*n < v.InFlight {
		return finding{}
	}
	return found("bad", "permits do not end", "Permits are older than LeakAfter. The table of permits below names the lines that acquired them: look there for a path "+
		"without Done or Release. If the line is that of a middleware, handlers have not returned, and a goroutine profile shows where they hang.", "other-signs")
}

func (v *view) stalls() finding {
	if !v.Stalled {
		return finding{}
	}
	todo := "Admitted work does not end. A goroutine profile shows where it hangs: mostly in a call without a deadline, to a database, a lock or another service that all work shares."
	if len(v.Leaks) == 0 {
		todo += " If no goroutine does such work, permits were not given back: set limiter.Config.LeakAfter, which names the line."
	}
	if v.Queued > 0 {
		todo += " If it hangs in a wait for this limiter, work holds a slot of it: give each layer a limiter of its own."
	}
	return found("bad", "stalled", todo, "other-signs")
}

// loses tells of work that was late, was given up or was refused further down.
func (v *view) loses() finding {
	late, left, below := v.share(limit.Deadline), v.share(limit.Canceled), v.share(limit.Overload)
	if v.Lost == 0 && left < manyLeave {
		left = 0 // some clients always leave
	}
	share := late + left + below
	if v.Lost == 0 && share < muchFails {
		return finding{}
	}
	f := finding{mood: "bad", word: "work is lost, " + about(share), see: "other-signs"}
	if v.Lost > 0 {
		f.word = "little ends in time"
	}
	of := v.most(": %s", func(k *kindView) float64 { return float64(k.lost) })
	switch {
	case v.Mode == limiter.DryRun && (v.Lost > 0 || v.Demand > 1):
		f.todo = "Far more runs at once than is done in time, and nothing is refused. Switch the mode to enforce, on one replica first: " +
			"the limit comes down within seconds. If little ends in time with that either, look at what is behind the service."
	case below >= max(late, left):
		f.todo = "Work is refused by what it calls" + of + ". Look at that service, and at its limiter."
	case late >= left:
		f.todo = "What is admitted runs into its deadline without an answer" + of + ". Look at what it calls: a database, a lock, another service."
	default:
		f.todo = "Callers leave before what was admitted ends" + of + ". Look at what it calls, and at how long callers wait."
	}
	return f
}

func (v *view) fails() finding {
	share := v.share(limit.Failed)
	if share < muchFails {
		return finding{}
	}
	return v.failing(share)
}

// failsSome tells of failures that are few, in all or of one kind: a shortage comes first.
func (v *view) failsSome() finding {
	share := v.share(limit.Failed)
	if share >= muchFails || share < someFails && v.failingKind() == nil {
		return finding{}
	}
	return v.failing(share)
}

func (v *view) failing(share float64) finding {
	word := "work fails, " + about(share)
	if k := v.failingKind(); k != nil {
		word = fmt.Sprintf("%s of %.60s fails", about(float64(k.failed)/float64(k.ended)), k.title())
	}
	return found("bad", word, "Admitted work ends in errors or panics. That is no overload: look at the log of the service, at what was deployed last, and at what the work calls.", "other-signs")
}

// failingKind returns the kind that has most of the failures, and more than its share of them, if enough of its
// work fails.
func (v *view) failingKind() *kindView {
	k := v.culprit(func(k *kindView) float64 { return float64(k.failed) })
	if k == nil || k.ended < manyEnds || float64(k.failed) < someFails*float64(k.ended) {
		return nil
	}
	return k
}

// collects tells of a garbage collector that works hard.
func (v *view) collects() finding {
	if v.collector < hardGC {
		return finding{}
	}
	return found("bad", "the garbage collector takes "+about(v.collector)+" of the processors",
		"Take a heap profile: what is held (inuse_space) if memory is near GOMEMLIMIT, else what is allocated (alloc_space). More memory and a higher GOMEMLIMIT help at once.", "by-reason")
}

func (v *view) lacksProcessors() finding {
	if p := v.Processors; p.Bound == 0 || p.Wait <= p.Bound && p.Admitted == 1 {
		return finding{}
	}
	return found("bad", "processors are short", "Requests wait for a processor before any code sees them. Add replicas or processors. A CPU profile shows what uses them; "+
		"look for a quota of the container below GOMAXPROCS, and for a neighbour on the same machine.", "by-reason")
}

// hogged tells of one kind of work that holds most slots, and takes far longer than the others, while slots are
// short.
func (v *view) hogged() finding {
	name, ok := v.hog()
	if !ok || v.Stalled || v.loses().word != "" || v.Queued == 0 && v.InFlight < v.Limit && !(v.rejected > 0) { // unknown is NaN
		return finding{}
	}
	return found("bad", fmt.Sprintf("most slots are held by %.60s", name), "Requests of this kind take far longer than the others, which wait or are refused for it. "+
		"Look at what it waits for, or give it a limiter of its own. If it is long by nature, declare it in Config.Long.", "other-signs")
}

// slows tells of one kind of work that takes much longer than it did, and most of the time of all work.
func (v *view) slows() finding {
	all := 0.0
	for i := range v.lately {
		all += v.lately[i].service.Sum()
	}
	for i := range v.lately {
		k := &v.lately[i]
		if k.slower() && len(v.lately) > 1 && 2*k.service.Sum() > all {
			return found("busy", fmt.Sprintf("%.60s became slow", k.title()), "Half of the work of this kind takes "+quantile(k.service, .5)+" and more, where a quarter of it took "+
				quantile(k.before, .25)+" at most, and most of the time of all work is its. Look at what it waits for. A deadline of its own, or a limiter of its own, keeps it from the slots of the others.", "other-signs")
		}
	}
	return finding{}
}

func (v *view) refuses() finding {
	reason, any := most(v.rejectedBy)
	if !any {
		return finding{}
	}
	todo := toDo(reason)
	switch reason {
	case spillway.ReasonWaitTooLong, spillway.ReasonQueueFull, spillway.ReasonDeadlineTooClose:
		todo += v.most(" Most slots are held by %s.", func(k *kindView) float64 { return float64(k.inFlight) })
	}
	if v.Stalled || v.loses().word != "" || v.fails().word != "" {
		todo = "That follows from what is said above."
	}
	return found("bad", "refusing: "+reason.String(), todo, "by-reason")
}

// toDo is the advice for a reason.
func toDo(r spillway.Reason) string {
	switch r {
	case spillway.ReasonWaitTooLong, spillway.ReasonQueueFull, spillway.ReasonPreempted:
		return "More comes than can be served in time. Compare the charts: if more arrives, look at the callers or add capacity; " +
			"if the limit fell or the work became slower, look at what is behind the service."
	case spillway.ReasonDeadlineTooClose:
		return "No slot is free in the time that callers give. If one caller: its timeout is too short. If all: more comes than is finished, or the work became slow."
	case spillway.ReasonMemory:
		return "The heap is near GOMEMLIMIT. Take a heap profile. More replicas help, and a higher limit if the machine has the memory."
	case spillway.ReasonScheduler:
		return "Requests wait for a processor. Add replicas or processors."
	case spillway.ReasonSignal:
		return "Mend what the signal names, such as a connection pool that is too small or a slow database."
	case spillway.ReasonQuota:
		return "Callers have more than their share while others are active. If it is one caller, speak with it; if it is a proxy, set Config.Caller."
	case spillway.ReasonBudget:
		return "This replica's share of a budget is used up, or the budget's engine is away: see Stats().Err of the member."
	}
	return ""
}

func (v *view) dry() finding {
	would, any := most(v.wouldBy)
	f := finding{mood: "busy", see: "by-reason"}
	switch {
	case v.Mode != limiter.DryRun:
		return finding{}
	case any:
		f.word = "dry run, would refuse: " + would.String()
	case v.Demand > 1:
		f.word = "dry run, more comes than can be served"
	default:
		return finding{mood: "calm", word: "dry run"}
	}
	if v.Demand > 1 {
		f.todo = "More comes than can be served. A limiter would keep what it admits in time: enforce for a part of the callers, or scale by demand."
	}
	return f
}

func (v *view) pressed() finding {
	if v.Pressure.Cap == 0 {
		return finding{}
	}
	return found("busy", "pressed down by "+v.Pressure.By, "", "by-reason")
}

// slowClients tells of requests that wait for their clients, if they are as many as work.
func (v *view) slowClients() finding {
	if v.Paused < max(8, v.InFlight) {
		return finding{}
	}
	return found("busy", "clients are slow", "Requests wait for clients that are slow to send or to read. They hold no slot while they wait, and stop nobody else. Clients that stand still are cut off "+
		"(Config.ClientTimeout), and count as lost. Much of it: an attack, or a network that is broken.", "other-signs")
}

func (v *view) parks() finding {
	if v.Parked == 0 || v.Stalled || v.loses().word != "" { // then others are not served beside it
		return finding{}
	}
	todo := "Some work takes far longer than usual" + v.most(": %s", func(k *kindView) float64 { return float64(k.parked) }) +
		". Others are served beside it, so it waits for something that they do not need: a dependency without a deadline, a lock, a client. Look at that with a goroutine profile."
	if len(v.Leaks) == 0 {
		todo += " If no goroutine does such work, permits were not given back: set limiter.Config.LeakAfter, which names the line."
	}
	return found("busy", "work is parked", todo+" If the work is long by nature, declare it in Config.Long.", "other-signs")
}

func (v *view) waits() finding {
	switch {
	case v.Mode == limiter.DryRun:
	case v.Queued > 0:
		return finding{mood: "busy", word: "work waits"}
	case v.Limit > 0 && v.InFlight >= v.Limit:
		return finding{mood: "busy", word: "full"}
	}
	return finding{}
}

// share returns the share of an outcome among the latest ends; 0 if they are few.
func (v *view) share(o limit.Outcome) float64 {
	all := uint64(0)
	for _, n := range v.ended {
		all += n
	}
	n := v.ended[o]
	if all < fewEnds || all < manyEnds && 2*n <= all {
		return 0
	}
	return float64(n) / float64(all)
}

// culprit returns the kind that has more than half of something, if the odds are at least twice those of all its
// work: where all work is in trouble, the most frequent kind is not to blame.
func (v *view) culprit(of func(*kindView) float64) *kindView {
	all, work, best := 0.0, 0.0, 0
	for i := range v.lately {
		all, work = all+of(&v.lately[i]), work+v.lately[i].work()
		if of(&v.lately[i]) > of(&v.lately[best]) {
			best = i
		}
	}
	if all == 0 || len(v.lately) < 2 {
		return nil
	}
	k := &v.lately[best]
	if part := of(k); 2*part <= all || part*(work-k.work()) < 2*(all-part)*k.work() {
		return nil
	}
	return k
}

// most names the culprit, if there is one.
func (v *view) most(format string, of func(*kindView) float64) string {
	if k := v.culprit(of); k != nil {
		return fmt.Sprintf(format, fmt.Sprintf("%.60s", k.title()))
	}
	return ""
}

// hog returns the kind that holds more than half of the slots or of their time, while work of the other kinds takes a fifth of
// its time or less in the mean.
func (v *view) hog() (name string, ok bool) {
	for i := range v.lately {
		k := &v.lately[i]
		n, sum := 0.0, 0.0
		for j := range v.lately {
			if j != i {
				n, sum = n+float64(v.lately[j].service.Count()), sum+v.lately[j].service.Sum()
			}
		}
		if k.name == "" || 5*k.inFlight < 2*v.InFlight || 2*k.inFlight <= v.InFlight && k.service.Sum() <= sum {
			continue
		}
		return k.title(), n > 0 && k.service.Count() > 0 && k.service.Mean() > 5*sum/n
	}
	return "", false
}

// about formats a share in coarse steps, so that the text seldom changes.
func about(share float64) string {
	if share < muchFails {
		return fmt.Sprintf("%.0f"+nbsp+"%%", max(100*share, 1))
	}
	if share > 0.975 && share < 0.999 {
		return "nearly all"
	}
	return fmt.Sprintf("%.0f"+nbsp+"%%", 5*math.Round(20*share))
}

// since says which time the recent figures cover, in steps of five seconds.
func (v *view) since() string {
	switch c := v.covers; {
	case c >= (kept-2)*interval:
		return "in the last two minutes"
	case c < 5*time.Second:
		return "in the last seconds"
	default:
		return fmt.Sprintf("in the last %d"+nbsp+"s", c/(5*time.Second)*5)
	}
}
