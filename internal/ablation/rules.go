package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// rule is one rule of the law, the gate or the shedding by processors, and the edit that switches the rule
// off. The program itself has no switches.
type rule struct {
	name     string
	file     string // in the repository
	old, new string // new replaces old, which stands in the file once
}

const (
	law  = "limit/"
	gate = "internal/gate/"
	cpu  = "internal/processors/control.go"
)

// rules are in the order of the table.
var rules = []rule{
	{"law: kinds of work are told apart", law + "classes.go", "if c.times++; (c.times", "k.known, k.weight = true, 1\n\tif class != c.reference {\n\t\treturn false, false\n\t}\n\tif c.times++; (c.times"},
	{"law: the pace is a second measure", law + "pace.go", "return p.n >= leastMembers &&", "return false && p.n >= leastMembers &&"},
	{"law: short work counts by throughput", law + "policy.go", "return !a.aim.jobs && a.limit <= firstLimit &&", "return false && a.limit <= firstLimit &&"},
	{"start: full at once, what runs without a queue", law + "raise.go", "case a.filled(r):", "case false && a.filled(r):"},
	{"start: a limit that nothing tested follows what ran", law + "raise.go", "a.proven && !a.aim.jobs && to", "false && to"},
	{"start: times under another limit are outdated", law + "classes.go", "high > fewSlots &&", "high < 0 &&"},
	{"raise: a kept step is doubled", law + "raise.go", "if u.stride *= 2;", "if u.stride *= 1;"},
	{"raise: refused again, it waits longer", law + "raise.go", "pause <<= min(a.raises.vain, maxVain)", "pause <<= 0 * min(a.raises.vain, maxVain)"},
	{"raise: lost capacity is looked for", law + "raise.go", "return a.former > recallFrom*a.limit &&", "return false && a.former > recallFrom*a.limit &&"},
	{"cut: scheduled", law + "policy.go", "case r.at >= a.cuts.next && a.limit > 1 &&", "case false && a.limit > 1 &&"},
	{"cut: two readings in a row", law + "policy.go", "sureRises  = 2", "sureRises  = 1"},
	{"cut: the price of more", law + "cut.go", "price := !a.aim.jobs &&", "price := false &&"},
	{"cut: less at once takes longer", law + "cut.go", "case scheduled && t.after.value-max(", "case false && scheduled && t.after.value-max("},
	{"cut: a small excess is trimmed", law + "policy.go", "{(*adaptive).consider, (*adaptive).trim,", "{(*adaptive).consider, (*adaptive).consider,"},
	{"loss: a lower limit is tried", law + "shed.go", "return r.lost >= muchLost &&", "return false && r.lost >= muchLost &&"},
	{"loss: falls to what runs without a queue", law + "shed.go", "if n := r.unqueued(); n > 0 {", "if n := r.unqueued(); false {"},
	{"loss: lost work counts in latency", law + "estimator.go", "wasted := min(r.lost, mostWasted)", "wasted := min(r.refused, mostWasted)"},
	{"loss: taken back if less is done", law + "shed.go", "return !a.aim.jobs && r.full &&", "return false && r.full &&"},
	{"others: a higher limit is adopted", law + "policy.go", "if a.enforcedHigher = r.enforced >= a.limit+0.5; a.enforcedHigher {", "if a.enforcedHigher = r.enforced >= a.limit+0.5; false {"},
	{"gate: a burst may wait longer", gate + "wait.go", "return g.overdemand < 1 &&", "return false && g.overdemand < 1 &&"},
	{"gate: a small excess may wait longer", gate + "wait.go", "short *= max(1, 0.06/(over*over))", "short *= max(1, 0*over)"},
	{"gate: no kind goes unserved for its little time", gate + "wait.go", "max(fairPart*g.bears[lv], services*g.service.typical())", "float64(Never)"},
	{"gate: deadlines end long work", gate + "life.go", "return l != nil && !l.mixed && l.longestUseful > 0 &&", "return false && l.longestUseful > 0 &&"},
	{"gate: callers without a deadline stay as usual", gate + "stay.go", "if s.left.n < stayKnown ||", "if true || s.left.n < stayKnown ||"},
	{"gate: callers that left after their usual stay are lost", gate + "stay.go", "if stayed >= nearlyStayed*s.most() {", "if false {"},
	{"gate: probes take a part of the capacity", gate + "kinds.go", "if of.doubted < probeEvery || float64(now-of.probed) < probeEvery*part*float64(len(k.list)) {", "if of.doubted < probeEvery {"},
	{"gate: a kind that is refused is tried", gate + "gate.go", "!g.service.kinds.probe(now, kind, g.service.part.mean)", "true"},
	{"gate: the lowest level has turns", gate + "floor.go", "return f.passed >= f.every }", "return false && f.passed >= f.every }"},
	{"gate: slots are gathered for large work", gate + "floor.go", "if g.queued == 0 || g.queued >= g.cfg.QueueSize ||", "if true || g.queued >= g.cfg.QueueSize ||"},
	{"gate: large work does not block for long", gate + "floor.go", "return w.cost > 1 && !g.unbounded() &&", "return false && !g.unbounded() &&"},
	{"gate: critical work overtakes a fallen limit", gate + "gate.go", "if g.Rule() != LawRules ||", "if true || g.Rule() != LawRules ||"},
	{"gate: advice counts the callers sent away", gate + "advice.go", "booked := (g.booked[lv] + g.back[lv]) /", "booked := 0 * (g.booked[lv] + g.back[lv]) /"},
	{"gate: only work within the limit tells the capacity", gate + "measure.go", "if within || c.part.n < serviceKnown {", "if true || within {"},
	{"parking", gate + "parking.go", "if !g.cfg.Parks || p.trying()", "if g.cfg.Parks || p.trying()"},
	{"parking: of normal work", gate + "parking.go", "(few || full &&", "(true || few || full &&"},
	{"parking: only where the law does not know it is full", gate + "parking.go", "(few || full && (k.now == 0 || k.pause > normalPause))", "(few || full && few)"},
	{"parking: a second measurement", gate + "parking.go", "p.sort != abnormal && p.state == trying: // one", "false: // one"},
	{"parking: probes wait in turn", gate + "parking.go", "p.inTurn = agesPerOctave *", "p.inTurn = 0 * agesPerOctave *"},
	{"parking: a crowd that arrives alone is its own probe", gate + "parking.go", "return own >= mostOwn*all", "return false && own >= mostOwn*all"},
	{"parking: shown work before the slots run out", gate + "parking.go", "if p.credit <= 0 || p.trying()", "if true || p.trying()"},
	{"parking: a kind begins anew after a large trial", gate + "parking.go", "k.pause = 0\n", "k.pause += 0\n"},
	{"processors: a wait is shed", cpu, "arrivals := c.madeBy(rate)", "return\n\t\tarrivals := c.madeBy(rate)"},
	{"processors: the growth of the wait counts", cpu, "brake*(c.wait-before)", "0*brake*(c.wait-before)"},
	{"processors: two readings", cpu, "min(now, c.latest), now", "now, now"},
	{"processors: a trial where arrivals may not be the cause", cpu, "if !arrivals && now-c.calm < doubt {", "if !arrivals {"},
	{"processors: such a trial only of a long wait", cpu, "c.wait < trialFrom*c.aim", "false && c.wait < trialFrom*c.aim"},
	{"processors: a trial lasts for two waits", cpu, "2*c.waitBefore*float64", "0*c.waitBefore*float64"},
	{"processors: far more that pass prove a trial", cpu, "\t\tc.proven = true\n\tcase", "\tcase"},
	{"processors: a pause is long beside what was in vain", cpu, "vainPart*(now-c.resting)", "4*time.Second"},
	{"processors: growth below the aim is no reason", cpu, "max(before, c.aim)); !arr", "before); !arr"},
	{"processors: shedding in vain pauses", cpu, "c.log, c.resting, c.vain = 0, now+c.rest,", "c.log, c.resting, c.vain = 0, now+0*c.rest,"},
}

// without returns the text of the rule's file with the rule off. root is the repository.
func (r *rule) without(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, r.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), r.old); n != 1 {
		return "", fmt.Errorf("%q: %s has %q %d times: rules.go must follow the code", r.name, r.file, r.old, n)
	}
	return strings.Replace(string(text), r.old, r.new, 1), nil
}
