package overload

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/load/judge"
)

// Admission is the HTTP middleware in front of a service: in a storm of clients that retry, with
// clients that leave, in a dry run beside the real one, with hostile clients, and with requests that only wait.
var Admission = experiment.Declare(admission, admissionHelp, planOf(admissions), Roles)

const admissionHelp = `A small HTTP service behind admissionhttp, told no number, in a process of its own. It waits for a backend of ten slots, 20 to 60 ms a request, some 250 a second: one that lets more wait (N-way) and one that gets less done the more it is asked (degrading).

In storm 200 clients with admissionhttp/client send three times the capacity (open loop, Poisson) and retry within five seconds what was refused; a fifth is critical. What counts is goodput beside the capacity, and whether the retries come in waves. In leavers every third client leaves after half of the service time: what do the others get? In dryrun twice the capacity comes without retries, in a dry run and for real: is the share that is refused of each priority the predicted one? In hostile a third process sends slow headers, headers of 1 MB, endless and trickling bodies, half-closed connections and HTTP/2 streams that are reset at once, and holds thousands of idle connections: how long do health probes take, and how much memory?

In holders lookups come at a fifth of the capacity, and then a hundred clients that ask the backend for nothing: slow readers, bodies that stop, long polls, or calls of a dependency that hangs. What share of the lookups is answered within a second, behind our limiter with the README's deadlines (spillway), a semaphore of the backend's size (semaphore), failsafe-go's adaptive limiter (failsafe), and nothing (none)?

The scenes are storm, leavers, dryrun, hostile and holders.`

// The scenes of this experiment.
const (
	storm   = "storm"    // 200 clients with retries, at three times the capacity
	leavers = "leavers"  // the same, and a third of them leaves
	closed  = "capacity" // what storm and leavers are compared with
	dryrun  = "dryrun"   // what a dry run predicts, and what is refused
	hostile = "hostile"  // clients that mean harm
	holders = "holders"  // requests that only wait, beside lookups
)

// The contestants besides Spillway and the rivals in front of holders.
const (
	fixed     = "fixed"     // the same gate, told the right limit
	dry       = "dry run"   // as Spillway, refusing nothing
	saturated = "saturated" // no limit, and as many clients as keep the backend busy
)

// The backends.
const (
	nWay      = "N-way"     // so many at a time, first come, first served: more at once only wait
	degrading = "degrading" // more at once slow each other down, and the total falls
)

// credential is what the well-behaved clients have: their priority is believed.
const credential = "Bearer lab"

// afterwards is how long the load goes on after the measurement, so that what was sent within it meets the
// same storm when it is retried.
const afterwards = 2 * time.Second

// callersWait is the deadline of every request in front of holders, as in the README: Deadlines for ours,
// the same deadline for the others.
const callersWait = 2 * time.Second

// admissions are the scenes of this experiment. Nearly all of a request is waiting.
var admissions = slices.Concat(behindMiddleware(nWay), behindMiddleware(degrading), []*scene{{
	name: hostile, title: "hostile clients", setup: hostile + ", " + nWay + " backend", backend: nWay, load: "0.5x", contestants: []string{Spillway}, handler: admitted,
	kinds: []kind{ // as many of a second kind as are 50 a second, beside half of the capacity
		{name: "known", parts: 5, path: "/work", deadline: 2 * time.Second, header: map[string]string{"Authorization": credential, admissionhttp.HeaderPriority: "critical"}},
		{name: "probes", parts: 2, path: "/livez", deadline: 2 * time.Second, header: map[string]string{"Connection": "close"}}, // as platforms do, on a new connection each
	},
	times: .7, time: 6 * time.Second, during: attack, figures: probed,
}}, besideHolders())

// behindMiddleware are the scenes in front of a backend.
func behindMiddleware(backend string) []*scene {
	retrying := manners{priority: priorityOf, patience: 5 * time.Second, aware: true}
	leaving, plain := retrying, retrying
	leaving.leaves = (usual.Min + usual.Max) / 4
	plain.patience, plain.once = time.Second, true
	row := func(name string, times float64, m manners, beside string, contestants ...string) *scene {
		return &scene{
			name: name, setup: name + ", " + backend + " backend", title: name + ", " + backend + " backend", backend: backend, handler: admitted, contestants: contestants,
			manners: func(*trial) manners { return m }, times: times, before: []before{{lasts: 3 * time.Second}}, time: 6 * time.Second, tail: afterwards,
			crowded: .1, uses: .1, beside: beside, figures: stormed,
		}
	}
	capacity := &scene{
		name: closed, serves: []string{storm, leavers}, setup: closed + ", " + backend + " backend", backend: backend, handler: admitted, load: "closed loop", contestants: []string{saturated},
		kinds: []kind{{name: "all", parts: 1, path: "/work", deadline: time.Minute}}, clients: []int{10, 12, 14}, time: 6 * time.Second,
	}
	capacity.group = func(m *session) experiment.Group { return saturating(m, capacity) }
	dryRun := row(dryrun, 2, plain, "dryrun, "+backend, dry, dry, Spillway) // more at once would make their clients late
	dryRun.before = nil
	for i := range 10 { // an estimate that is made without refusing anything needs to have seen the backend calm
		dryRun.before = append(dryRun.before, before{times: .3 + 1.7*float64(i)/10, lasts: 1200 * time.Millisecond})
	}
	return []*scene{
		row(storm, 3, retrying, storm, Spillway, Spillway), row(leavers, 3, leaving, leavers, Spillway, Spillway), row(leavers, 3, leaving, leavers+", "+fixed, fixed),
		capacity, dryRun,
	}
}

// saturating measures the capacity without a limit, in every repeat.
func saturating(m *session, s *scene) experiment.Group {
	return experiment.Group{
		Keys: m.keys(s), Beside: closed, Uses: .1, Expect: s.expect(m.Pace, saturated),
		Run: func(ctx context.Context, of experiment.Trial) (runs []results.Run, err error) {
			err = m.with(ctx, s, saturated, of.Seed, func(ctx context.Context, t *trial) error {
				best, _, err := t.saturate(ctx)
				if err == nil {
					run := experiment.FromLoad(best)
					run.Killed, run.Process, run.Extra = t.run.Killed, t.run.Process, map[string]float64{good.Key: best.Goodput()}
					runs = []results.Run{run}
				}
				return err
			})
			return runs, err
		},
	}
}

// admitted is a small service behind what bounds it: a rival in front of everything, or the middleware.
func admitted(_ context.Context, j Job, f *Front) (http.Handler, error) {
	var store interface {
		Ask(ctx context.Context) error
	} = newNWay(j.Work, j.Seed)
	if j.Backend == degrading {
		store = service.NewDatabase(j.Work, j.Seed)
	}
	routes := routesTo(store.Ask)
	web := admissionhttp.Config{Trusted: func(r *http.Request) bool { return r.Header.Get("Authorization") == credential }}
	if j.Scene == holders {
		f.web.ConnContext = smallBuffers
		if j.Contestant != Spillway {
			g, err := f.Guard(j)
			if err != nil {
				return nil, err
			}
			return g.Behind(func(w http.ResponseWriter, r *http.Request) error { routes.ServeHTTP(w, r); return nil }, callersWait), nil
		}
		web.Deadlines = map[spillway.Priority]time.Duration{spillway.Normal: callersWait}
	}
	configs := map[string]limiter.Config{fixed: {Law: limit.NewFixed(j.Slots)}, dry: {Mode: limiter.DryRun}, saturated: {Mode: limiter.Off}}
	protect, err := f.Admit(configs[j.Contestant], 0, web)
	if err != nil {
		return nil, err
	}
	return protect(routes), nil
}

// longestBody is the most that is read of a body.
const longestBody = 1 << 20

// routesTo are the routes of the service, of which some ask the backend, and some only wait.
func routesTo(ask func(ctx context.Context) error) *http.ServeMux {
	report := []byte(strings.Repeat("a", reportSize))
	mux := http.NewServeMux()
	for route, work := range map[string]Work{
		"GET /livez": func(w http.ResponseWriter, _ *http.Request) error { _, _ = io.WriteString(w, "ok\n"); return nil },
		"GET /work":  func(_ http.ResponseWriter, r *http.Request) error { return ask(r.Context()) },
		"POST /upload": func(w http.ResponseWriter, r *http.Request) error {
			if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, longestBody)); err != nil {
				return ErrRequest // too long, or too late
			}
			return ask(r.Context())
		},
		"GET /report": func(w http.ResponseWriter, _ *http.Request) error { _, err := w.Write(report); return err },
		"GET /poll":   func(_ http.ResponseWriter, r *http.Request) error { return service.Pause(r.Context(), pollTime) },
		"GET /mail":   func(_ http.ResponseWriter, r *http.Request) error { <-r.Context().Done(); return r.Context().Err() },
	} {
		mux.Handle(route, work)
	}
	return mux
}

// priorityOf gives every client a fifth of critical and a fifth of low requests.
func priorityOf(n uint64) spillway.Priority {
	switch (n/clientCount + n) % 5 {
	case 0:
		return spillway.Critical
	case 1:
		return spillway.Low
	}
	return spillway.Normal
}

// stormed is what a crowd got of the service.
func stormed(t *trial) map[string]float64 {
	c := t.crowd
	from, to := t.from.Sub(c.began), t.to.Sub(c.began)
	figures := map[string]float64{good.Key: 0, "refused": 0, "retries": 0}
	for _, r := range c.sent {
		if r.good() && r.ended >= from && r.ended < to {
			figures[good.Key] += 1 / t.run.Elapsed
		}
		if r.shed {
			figures["refused"]++
		}
	}
	for _, one := range c.callers {
		figures["retries"] += float64(one.retries())
	}
	vital := c.of(func(r request) bool { return r.counts && !r.leaves && r.priority == spillway.Critical })
	figures[critical.Key] = vital.share(0, to, request.good)
	waves(figures, t.served, t.to)
	shares(figures, t.served.Samples, t.from, t.to)
	return figures
}

// waves adds how many requests arrived in a step at most and on average, from the
// first refusal until then. The arrivals include retries.
func waves(extra map[string]float64, s service.Served, until time.Time) {
	i := slices.IndexFunc(s.Samples, func(x service.Sample) bool { return x.Rejected > 0 })
	if i < 0 {
		return
	}
	from, to := int(s.Samples[i].At.Sub(s.Began)/service.Step), int(until.Sub(s.Began)/service.Step)
	if from >= to || to > len(s.Arrivals) {
		return
	}
	most, sum := 0.0, 0.0
	for _, n := range s.Arrivals[from:to] {
		most, sum = max(most, float64(n)), sum+float64(n)
	}
	if mean := sum / float64(to-from); mean > 0 {
		extra[wave.Key] = most / mean
	}
}

// shares adds the share, in per cent, of each priority that was refused in that time or
// left while it waited, or would have been in a dry run; what was refused since the start;
// and whether the dry run's report said at the end that its estimate is unsafe.
func shares(extra map[string]float64, samples []service.Sample, from, to time.Time) {
	samples = slices.DeleteFunc(samples, func(x service.Sample) bool { return x.At.Before(from) || !x.At.Before(to) })
	if len(samples) == 0 {
		return
	}
	first, last := samples[0], samples[len(samples)-1]
	extra["shed"] = float64(last.Rejected)
	extra[unsafely.Key] = map[bool]float64{true: 1}[last.Unsafe]
	for p, b := range last.ByPriority {
		a := first.ByPriority[p]
		if offered := b.Offered - a.Offered; offered > 0 {
			shed := b.Rejected - a.Rejected + b.WouldReject - a.WouldReject + b.Cancelled - a.Cancelled
			extra["share_"+p.String()] = 100 * float64(shed) / float64(offered)
		}
	}
}

// The figures. What a service has measured until it is killed counts, too, where so it says.
var (
	good        = ledger.Figure{Key: "goodput", Name: "goodput", OfKilled: true}
	worst       = ledger.Figure{Key: "probe_worst_ms", Name: "slowest answer to a probe", OfKilled: true}
	memoryShare = ledger.Figure{Key: "memory_share", Name: "peak resident memory, of the bound,", OfKilled: true}
	critical    = ledger.Extra("critical", "critical requests answered well")
	wave        = ledger.Extra("wave", "most arrivals in 100 ms over the mean")
	answered    = ledger.Extra("answered", "share of the lookups answered in time")
	unsafely    = ledger.Extra("unsafe", "report that the estimate is unsafe")
)

func (s *scene) of(contestant string, f ledger.Figure) ledger.Term {
	return ledger.Of(s.key(contestant), f)
}

// inFrontOf are the scenes of that name that have Spillway, one for each backend.
func inFrontOf(name string) []*scene {
	return slices.DeleteFunc(named(admissions, name), func(s *scene) bool { return !slices.Contains(s.contestants, Spillway) })
}

// saturated is the capacity of the backend of a scene.
func (s *scene) saturated() ledger.Term {
	return ledger.Of(ledger.Key{Setup: closed + ", " + s.backend + " backend", Load: "closed loop", Pattern: saturated}, good)
}

// forStayers is the part of the backend that is left for those that stay: a third of the
// clients leaves after half of the service time, and where work ends with its caller
// uses half of it.
var forStayers = map[string]float64{nWay: 2 / (2 + 1.), degrading: 2 / (2 + .5)}

// offBy is the largest difference of any priority's shares, predicted and refused.
func offBy(s *scene) ledger.Term {
	var all []ledger.Term
	for _, priority := range []string{"low", "normal", "critical"} {
		f := ledger.Extra("share_"+priority, "share of "+priority+" requests refused")
		predicted, refused := s.of(dry, f), s.of(Spillway, f)
		all = append(all, predicted.Minus(refused), refused.Minus(predicted))
	}
	return ledger.Largest(all...)
}

var admission = ledger.Family{
	ID:    "admission",
	Title: "The HTTP middleware stands in front of a service in a storm of retries, with clients that leave, in a dry run, under attack, and with requests that only wait",
	Claims: []ledger.Claim{
		{ID: "admission-1", Goal: true, Title: "at three times the capacity, with retries, it answers at least 95 % of the capacity", Parts: []ledger.Part{
			{Subject: "goodput/capacity", Unit: "x", Rule: judge.AtLeast(0.95), Spread: 0.02,
				Cases: cases(inFrontOf(storm), nil, func(s *scene) ledger.Term { return s.of(Spillway, good).Over(s.saturated()) })},
		}},
		{ID: "admission-2", Goal: true, Title: "at three times the capacity at least 99 % of the critical requests are answered well",
			Note: "A fifth of the requests is critical: 0.6 times the capacity, so that all of them fit.",
			Parts: []ledger.Part{{Subject: "critical requests answered well", Unit: "%", Rule: judge.AtLeast(99), Spread: 0.3, Max: 100,
				Cases: cases(inFrontOf(storm), nil, func(s *scene) ledger.Term { return s.of(Spillway, critical) })}}},
		{ID: "admission-3", Goal: true, Title: "retries come back spread out: no 100 ms after the first refusal have over three times the mean arrivals", Parts: []ledger.Part{
			{Subject: "most arrivals in 100 ms/mean", Unit: "x", Rule: judge.AtMost(3), Spread: 0.2,
				Cases: cases(inFrontOf(storm), nil, func(s *scene) ledger.Term { return s.of(Spillway, wave) })},
		}},
		{ID: "admission-4", Goal: true, Title: "when a third of the clients leaves after half of the service time, the others get at least 90 % of what there is for them",
			Note: "Their capacity is the backend's without what those that leave use of it, or what a limiter of exactly the right size achieves in the same storm, if that is more.",
			Parts: []ledger.Part{{Subject: "goodput of those that stay/their capacity", Unit: "x", Rule: judge.AtLeast(0.9), Spread: 0.03,
				Cases: cases(inFrontOf(leavers), nil, func(s *scene) ledger.Term {
					return s.of(Spillway, good).Over(ledger.Largest(s.of(fixed, good), s.saturated().Times(forStayers[s.backend])))
				})}}},
		{ID: "admission-5", Goal: true, Title: "a dry run at twice the capacity refuses nothing", Parts: []ledger.Part{
			{Subject: "requests refused in a dry run", Kind: judge.Never, Rule: judge.Exactly(0),
				Cases: cases(inFrontOf(dryrun), nil, func(s *scene) ledger.Term {
					return s.of(dry, ledger.Extra("shed", "requests refused by the service")).Plus(s.of(dry, ledger.Extra("refused", "refusals that clients got")))
				})},
		}},
		{ID: "admission-6", Goal: true, Title: "a dry run predicts the share that will be refused of each priority within 10 percentage points", Parts: []ledger.Part{
			{Subject: "largest difference of predicted and refused", Unit: "points", Rule: judge.AtMost(10), Spread: 2, Max: 100,
				Cases: cases(inFrontOf(dryrun)[:1], nil, offBy)},
		}},
		{ID: "admission-7", Goal: true, Title: "a dry run's report says that its estimate is unsafe where the backend gets less done the more it is asked, and only there", Parts: []ledger.Part{
			{Subject: "reports that are right", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(100),
				Cases: cases(inFrontOf(dryrun), nil, func(s *scene) ledger.Term {
					unsafe := s.of(dry, unsafely).Times(100)
					if s.backend == degrading {
						return unsafe
					}
					return ledger.Const(100).Minus(unsafe)
				})},
		}},
		{ID: "admission-8", Goal: true, Title: "health probes are answered in under 100 ms throughout, whatever hostile clients do", Parts: []ledger.Part{
			{Subject: "slowest answer to a probe", Unit: "ms", Kind: judge.Every, Rule: judge.Below(100), Max: 60_000, Cases: cases(inFrontOf(hostile), nil, func(s *scene) ledger.Term { return s.of(Spillway, worst) })},
		}},
		{ID: "admission-9", Goal: true, Title: "meanwhile its memory stays within 64 MiB and 32 KiB for each connection", Parts: []ledger.Part{
			{Subject: "peak resident memory/bound", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(100), Cases: cases(inFrontOf(hostile), nil, func(s *scene) ledger.Term { return s.of(Spillway, memoryShare) })},
		}},
		{ID: "admission-10", Goal: true, Title: "work that only waits stops nobody else: lookups are answered in time at least 95 % as often as without a limit", Parts: []ledger.Part{
			{Subject: "lookups answered/those without a limit", Unit: "x", Rule: judge.AtLeast(0.95), Spread: 0.02,
				Cases: cases(inFrontOf(holders), []string{None}, func(s *scene) ledger.Term { return s.of(Spillway, answered).Over(s.of(None, answered)) })},
		}},
	},
	Columns: []ledger.Column{
		{Key: "critical", Name: "critical requests answered, %", Format: "decimals"}, {Key: "retries", Name: "retries"}, {Key: "wave", Name: "most arrivals in 100 ms/mean", Format: "decimals"},
		{Key: "share_low", Name: "of low ones refused, %", Format: "decimals"}, {Key: "share_normal", Name: "of normal ones, %", Format: "decimals"}, {Key: "share_critical", Name: "of critical ones, %", Format: "decimals"},
		{Key: "probe_p99_ms", Name: "probe p99, ms", Format: "decimals"}, {Key: "probe_worst_ms", Name: "slowest, ms", Format: "decimals"}, {Key: "probes_failed", Name: "probes failed"},
		{Key: "connections", Name: "hostile connections"}, {Key: "memory_mib", Name: "peak memory, MiB"},
		{Key: "answered", Name: "lookups answered, %", Format: "decimals"}, {Key: "holders_refused", Name: "holders refused"},
	},
	Method: []ledger.Note{
		{Title: "The service", Text: "One handler that waits for a backend of ten slots, 20 to 60 ms a request, behind admissionhttp with limiter.Config{}, in a process of its own. N-way: ten at a time, others wait in a hidden queue, and what is in a slot runs to its end also when its client has left. Degrading: all run at once, and with c of them the total falls to √(10/c); work ends when its client leaves. The capacity is measured in a closed loop without a limit, in every repeat. Nearly all of a request is waiting: the two backends are measured at the same time, and so is Spillway's twin, whose difference from it is the noise floor."},
		{Title: "Where retries are counted", Text: "200 clients, each with a transport of admissionhttp/client and so with a budget and a memory of its own, send three times the capacity between them, by an open loop with Poisson arrivals. A request has five seconds, its retries included. Arrivals are counted by the service, retries included, in steps of 100 ms from the first refusal on. Goodput is what was answered within the measurement, and the load goes on after it, so that nothing is served by an idle backend later. A request that a client held back itself counts as refused."},
		{Title: "Clients that leave", Text: "Every third client closes its connection after half of the mean service time. What those that stay can get is the capacity without what the others use of it, where each of them is admitted: a third of the clients uses half of its work on the degrading backend, all of it in a slot of the N-way one."},
		{Title: "A dry run", Text: "Requests without retries, that leave after a second, come slowly until twice the capacity, once in a dry run and once for real. Of each priority the share that would have been refused is compared with the share that was refused, or left while it waited. On the degrading backend the dry run sees the collapse that a limit prevents: there its report has to say that the estimate is unsafe."},
		{Title: "Hostile clients", Text: "From a third process: connections that stay idle (a third of the files that a process may open, at most 50,000), 200 that send a header a second, headers of 1 MB, bodies without an end and bodies of two bytes a second, clients that close their half before the answer or within the request, and HTTP/2 streams that are reset as soon as they are opened. What they send is bounded, some megabytes and two thousand streams a second. Probes come on a new connection each, some 50 a second, and their time counts from the intended start. Known clients have a credential and are critical, and send half of the capacity."},
		{Title: "Requests that only wait", Text: "Lookups, each a request to the N-way backend, come at a fifth of its capacity; each waits a second. When the measurement begins, a hundred clients come that ask the backend for nothing, of one kind in each set-up: they read nothing of an answer of 4 MiB, send one byte of a body, poll for 1.5 s, or call a dependency that hangs until the deadline. One that is refused, or whose request has ended, begins anew half a second later. Nobody tells a limiter what waits. Every request has a deadline of two seconds behind every contestant, and http.Server ends a body after ten. Spillway has the README's configuration, the semaphore exactly the backend's slots and a wait of 100 ms at most, failsafe its defaults."},
		{Title: "A busy machine", Text: "A run whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, it does not count. What is sent late comes all at once: on a busy machine arrivals have peaks, and probes are slow, that are not the service's."},
	},
}
