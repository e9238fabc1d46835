package admission

import (
	"fmt"
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides the claims about every part that was run.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{experiment.Evidence{Runs: runs, Seed: seed, WithKilled: true}}
	var out []results.OldClaim
	for _, part := range Parts() {
		for _, backend := range backends(part) {
			in := setup(part, backend)
			if !slices.ContainsFunc(runs, func(r results.Run) bool { return r.Setup == in }) {
				continue
			}
			switch part {
			case Storm:
				out = append(out, e.goodput(in), e.critical(in), e.waves(in))
			case Leavers:
				out = append(out, e.leavers(in, backend))
			case Dry:
				out = append(out, e.dryRun(in))
				if backend == NWay {
					out = append(out, e.prediction(in))
				}
				out = append(out, e.warning(in, backend))
			case Hostile:
				out = append(out, e.probes(in), e.memory(in))
			}
		}
	}
	return out
}

type evidence struct{ experiment.Evidence }

// key is the cell of a pattern in a set-up, of which each has one load.
func (e evidence) key(setup, pattern string) experiment.Key {
	for _, r := range e.Runs {
		if r.Setup == setup {
			return experiment.Key{Setup: setup, Load: r.Load, Pattern: pattern}
		}
	}
	return experiment.Key{Setup: setup, Pattern: pattern}
}

func extra(name string) experiment.Figure {
	return func(r results.Run) float64 { return r.Extra[name] }
}

// extraOf is one figure of every repeat that has it.
func (e evidence) extraOf(k experiment.Key, name string) judge.Input {
	in := judge.Input{Seed: e.Seed, Missing: e.Missing(k)}
	for _, r := range e.InOrder(k) {
		if x, ok := r.Extra[name]; ok {
			in.Values = append(in.Values, x)
		}
	}
	if in.Missing == "" && len(in.Values) == 0 {
		in.Missing = fmt.Sprintf("%s (%s) refused nothing, or was too short.", k.Pattern, k.Load)
	}
	return in
}

func (e evidence) mean(k experiment.Key, name string) float64 {
	sum := 0.0
	runs := e.InOrder(k)
	for _, r := range runs {
		sum += r.Extra[name]
	}
	return sum / float64(max(len(runs), 1))
}

func (e evidence) goodput(setup string) results.OldClaim {
	ours, full := e.key(setup, Spillway), e.key(setup, Saturated)
	out := claims.AdmissionGoodput.Judge(setup, e.Pairs(ours, full, extra("goodput")))
	out.Why += fmt.Sprintf(" %.0f/s of %.0f/s; in each run the clients retried %.0f requests and held %.0f back.",
		e.mean(ours, "goodput"), e.mean(full, "goodput"), e.mean(ours, "retries"), e.mean(ours, "throttled"))
	return out
}

func (e evidence) critical(setup string) results.OldClaim {
	return claims.AdmissionCritical.Judge(setup, e.extraOf(e.key(setup, Spillway), "critical"))
}

func (e evidence) waves(setup string) results.OldClaim {
	k := e.key(setup, Spillway)
	out := claims.AdmissionWaves.Judge(setup, e.extraOf(k, "wave"))
	out.Why += fmt.Sprintf(" On average %.0f requests arrived in 100 ms, %.0f at most; the clients sent at most %.0f ms late, which comes on top.",
		e.mean(k, "arrivals_mean"), e.mean(k, "arrivals_most"), e.mean(k, "lag_ms"))
	return out
}

// leaversShare is the part of the backend that is left for those that stay: a third
// of the clients leaves after half of the service time, and where work ends with its
// caller uses half of it.
func leaversShare(backend string) float64 {
	used := 1.0
	if backend == Degrading {
		used = .5
	}
	return 2 / (2 + used)
}

func (e evidence) leavers(setup, backend string) results.OldClaim {
	ours, fixed, full := e.key(setup, Spillway), e.key(setup, Fixed), e.key(setup, Saturated)
	in := judge.Input{Seed: e.Seed, Missing: e.Missing(ours, fixed, full)}
	right, capacity := e.Of(fixed), e.Of(full)
	for _, r := range e.InOrder(ours) {
		f, ok := right[r.Repeat]
		c, also := capacity[r.Repeat]
		if ok && also {
			in.Pairs = append(in.Pairs, judge.Pair{A: r.Extra["goodput"], B: max(f.Extra["goodput"], c.Extra["goodput"]*leaversShare(backend))})
		}
	}
	out := claims.AdmissionLeavers.Judge(setup, in)
	out.Why += fmt.Sprintf(" %.0f/s; a limiter of the right size %.0f/s; the backend could do %.0f/s for them beside those that leave.",
		e.mean(ours, "goodput"), e.mean(fixed, "goodput"), e.mean(full, "goodput")*leaversShare(backend))
	return out
}

func (e evidence) dryRun(setup string) results.OldClaim {
	k := e.key(setup, DryRun)
	in := e.Values(k, func(r results.Run) float64 { return r.Extra["shed"] + r.Extra["refused"] })
	out := claims.AdmissionDryRun.Judge(setup, in)
	out.Why += fmt.Sprintf(" It would have refused %.0f in each run.", e.mean(k, "would"))
	return out
}

func (e evidence) prediction(setup string) results.OldClaim {
	dry, enforced := e.key(setup, DryRun), e.key(setup, Spillway)
	in := judge.Input{Seed: e.Seed, Missing: e.Missing(dry, enforced)}
	other := e.Of(enforced)
	words := ""
	for _, r := range e.InOrder(dry) {
		o, ok := other[r.Repeat]
		if !ok {
			continue
		}
		worst := -1.0
		words = ""
		for _, name := range priorityNames {
			said, measured := r.Extra["share_"+name]
			is, also := o.Extra["share_"+name]
			if !measured || !also {
				continue
			}
			worst = max(worst, math.Abs(said-is))
			words += fmt.Sprintf(" %s: %.0f %% predicted, %.0f %% refused.", name, said, is)
		}
		if worst >= 0 {
			in.Values = append(in.Values, worst)
		}
	}
	out := claims.AdmissionPrediction.Judge(setup, in)
	if words != "" {
		out.Why += " In the last repeat," + words
	}
	return out
}

func (e evidence) warning(setup, backend string) results.OldClaim {
	want := 0.0
	if backend == Degrading {
		want = 1
	}
	k := e.key(setup, DryRun)
	out := claims.AdmissionWarning.Judge(setup, e.Values(k, func(r results.Run) float64 {
		if r.Extra["unsafe"] == want {
			return 100
		}
		return 0
	}))
	if runs := e.InOrder(k); len(runs) > 0 {
		if text, ok := runs[len(runs)-1].Params["estimate"].(string); ok && text != "" {
			out.Why += fmt.Sprintf(" It says: %q.", text)
		}
	}
	return out
}

func (e evidence) probes(setup string) results.OldClaim {
	k, calm := e.key(setup, Spillway), e.key(setup, Calm)
	out := claims.AdmissionProbes.Judge(setup, e.Values(k, extra("probe_worst_ms")))
	out.Why += fmt.Sprintf(" Half within %.1f ms, p99 %.0f ms, %.0f failed in each run. Without hostile clients the slowest takes %.0f ms on average, p99 %.0f ms; that is the machine. Of the requests of known clients %.0f %% are answered, without hostile clients %.0f %%.",
		e.mean(k, "probe_p50_ms"), e.mean(k, "probe_p99_ms"), e.mean(k, "probes_failed"),
		e.mean(calm, "probe_worst_ms"), e.mean(calm, "probe_p99_ms"), e.mean(k, "known"), e.mean(calm, "known"))
	return out
}

func (e evidence) memory(setup string) results.OldClaim {
	k := e.key(setup, Spillway)
	out := claims.AdmissionMemory.Judge(setup, e.Values(k, extra("memory_share")))
	out.Why += fmt.Sprintf(" %.0f MiB with %.0f connections; %.0f MiB without.",
		e.mean(k, "memory_mib"), e.mean(k, "connections"), e.mean(e.key(setup, Calm), "memory_mib"))
	return out
}
