// Package results reads and writes the files of an experiment: the raw runs, from which
// every verdict can be computed again, and the verdicts with the machine and command
// that made them.
package results

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/usage"
)

// Schema names the layout of results.json. A change that an older reader would
// misread gets a new number.
const Schema = "spillway/results/v2"

// Files of a results folder.
const (
	ResultsFile = "results.json" // a Results, without its end until the session has one
	RunsFile    = "runs.jsonl"   // one Run a line, written as each run ends
	ReportFile  = "report.html"
)

// Results is one experiment's outcome.
type Results struct {
	Schema     string          `json:"schema"`
	Experiment string          `json:"experiment"`
	Started    time.Time       `json:"started"`
	Ended      time.Time       `json:"ended,omitzero"` // zero: it goes on, or it was killed
	Machine    Machine         `json:"machine"`
	Revision   string          `json:"revision"` // of the lab
	Command    []string        `json:"command"`
	Config     json.RawMessage `json:"config,omitempty"`   // of the experiment
	Settings   string          `json:"settings,omitempty"` // the same in words
	Seed       uint64          `json:"seed"`
	Repeats    int             `json:"repeats"`           // planned
	Looks      int             `json:"looks,omitempty"`   // how often it was judged and then extended
	Judged     []int           `json:"judged,omitempty"`  // at each of these looks, how many runs there were; what was decided by then stays so
	Part       bool            `json:"part,omitempty"`    // of a session of several experiments, which may leave out its goals
	Scaled     string          `json:"scaled,omitempty"`  // how this differs from the published sizes; empty at full size
	Partial    string          `json:"partial,omitempty"` // why runs are missing; empty when all ran
	Claims     []Claim         `json:"claims,omitempty"`
}

// Machine is where the runs were made.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPU        string `json:"cpu,omitempty"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	MemoryMiB  int    `json:"memory_mib,omitempty"`
	Go         string `json:"go"`
}

// Verdict is the judge's answer.
type Verdict = judge.Verdict

// The four verdicts of the claims ledger.
const (
	Holds         = judge.Holds
	Fails         = judge.Fails
	Inconclusive  = judge.Inconclusive
	NeedsHardware = judge.NeedsHardware
)

// Claim is a decided claim of the ledger.
type Claim struct {
	ID        string   `json:"id"`             // as in the ledger: "H2"
	Title     string   `json:"title"`          // the claim, a plain sentence without its full stop
	Goal      bool     `json:"goal,omitempty"` // ours to reach; nobody published it
	Verdict   Verdict  `json:"verdict"`
	Any       bool     `json:"any,omitempty"`       // one part is enough; otherwise all have to hold
	Published string   `json:"published,omitempty"` // the figures, in the source's words or units
	Source    string   `json:"source,omitempty"`    // its publisher
	Note      string   `json:"note,omitempty"`      // about the published method
	Why       string   `json:"why"`                 // in plain sentences
	MoreRuns  int      `json:"more_runs,omitempty"` // with inconclusive: repeats that would settle a claim whose parts are all decided
	Looks     int      `json:"looks,omitempty"`     // in a part of a whole session: how often the claim was judged with repeats enough for a verdict
	Answers   []Answer `json:"answers"`
}

// Answer is one part of a claim in one set-up.
type Answer struct {
	Part      string     `json:"part,omitempty"` // its id within the claim: "refused"
	Title     string     `json:"title"`          // what the part says
	Setup     string     `json:"setup"`
	Beside    bool       `json:"beside,omitempty"` // for comparison: it does not decide the claim
	Verdict   Verdict    `json:"verdict"`
	Measured  float64    `json:"measured"` // NaN, and null in JSON: there is none
	Low       float64    `json:"low"`
	High      float64    `json:"high"`
	Unit      string     `json:"unit"` // "x" for ratios, "%", "req/s", "KB", …
	Rule      judge.Rule `json:"rule"`
	Published []float64  `json:"published,omitempty"` // the published value, or the ends of its range
	Values    []float64  `json:"values,omitempty"`    // of the repeats that have one, in their order
	Repeats   int        `json:"repeats"`             // behind the interval
	Floor     float64    `json:"floor,omitempty"`     // how near to the rule's edge nothing is decided, in Unit; of a ratio, the distance from 1
	Follow    float64    `json:"follow,omitempty"`    // lag-1 correlation of the repeats
	Chance    float64    `json:"chance,omitempty"`    // probability that a figure at the rule's edge gets this verdict, if the verdict is decisive
	AtEdge    bool       `json:"at_edge,omitempty"`   // nearer than that
	Missing   bool       `json:"missing,omitempty"`   // a figure is missing, so that nothing was measured
	MoreRuns  int        `json:"more_runs,omitempty"` // with inconclusive: repeats that would settle it, 0 when more would not help
	Few       bool       `json:"few,omitempty"`       // fewer repeats than a verdict takes
	Why       string     `json:"why"`                 // one plain sentence
	Sides     []Side     `json:"sides,omitempty"`     // the figures it was made of
}

// figure is a number that JSON has as null if there is none: it has no NaN, and 0 would lie.
type figure float64

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *figure) UnmarshalJSON(data []byte) error {
	*f = figure(math.NaN())
	return json.Unmarshal(data, (*float64)(f)) // null changes nothing
}

type (
	plainAnswer Answer
	answerJSON  struct {
		plainAnswer
		Measured figure `json:"measured"`
		Low      figure `json:"low"`
		High     figure `json:"high"`
		Floor    figure `json:"floor,omitzero"`
	}
)

// MarshalJSON implements json.Marshaler.
func (a Answer) MarshalJSON() ([]byte, error) {
	return json.Marshal(answerJSON{plainAnswer(a), figure(a.Measured), figure(a.Low), figure(a.High), figure(a.Floor)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Answer) UnmarshalJSON(data []byte) error {
	none := figure(math.NaN())
	in := answerJSON{Measured: none, Low: none, High: none}
	err := json.Unmarshal(data, &in)
	*a = Answer(in.plainAnswer)
	a.Measured, a.Low, a.High, a.Floor = float64(in.Measured), float64(in.Low), float64(in.High), float64(in.Floor)
	return err
}

// Side is one of the figures behind an answer.
type Side struct {
	Setup   string  `json:"setup"`
	Load    string  `json:"load"`
	Pattern string  `json:"pattern"`
	Figure  string  `json:"figure"`
	Median  float64 `json:"median"` // over the repeats
}

// Run is one contestant's run: one pattern under one load in one set-up.
type Run struct {
	Experiment string `json:"experiment,omitempty"` // its id

	Setup     string               `json:"setup"`          // "published" or "real", or an extra set-up's name
	Load      string               `json:"load"`           // "low", "high", "sustained", …
	Pattern   string               `json:"pattern"`        // contestant
	Twin      bool                 `json:"twin,omitempty"` // the second of an A/A pair
	Repeat    int                  `json:"repeat"`         // runs of one repeat are paired
	Order     int                  `json:"order"`          // position in the whole session
	Started   time.Time            `json:"started"`
	Params    map[string]any       `json:"params,omitempty"`
	Elapsed   float64              `json:"elapsed_seconds"`
	Took      float64              `json:"took_seconds,omitempty"` // of its group, with what starts and ends it
	Killed    string               `json:"killed,omitempty"`       // why the contestant was killed; that is a result
	Failed    string               `json:"failed,omitempty"`       // why there is no measurement; that is no result
	Offered   uint64               `json:"offered"`
	Outcomes  []Outcome            `json:"outcomes"`
	Lag       *histogram.Histogram `json:"lag,omitempty"` // send lag of the generator, nanoseconds
	Process   Process              `json:"process"`
	Disturbed float64              `json:"disturbed,omitempty"` // the share of the processors that other processes used meanwhile, if it was too much
	Extra     map[string]float64   `json:"extra,omitempty"`     // figures of one experiment only
	Blocks    map[string][]float64 `json:"blocks,omitempty"`    // such figures, of each interleaved block
	Series    []Point              `json:"series,omitempty"`
}

// Gist is a short reason why there is no measurement: a Go program that crashes prints
// the reason and, after an empty line, the stack of each goroutine.
func Gist(failed string) string {
	gist, _, _ := strings.Cut(failed, "\n\n")
	return gist
}

// Outcome is the requests with one kind of outcome. Kinds: "ok", "rejected", "error",
// "timeout".
type Outcome struct {
	Kind    string               `json:"kind"`
	Count   uint64               `json:"count"`
	Latency *histogram.Histogram `json:"latency"` // from the intended start, nanoseconds
}

// Process is what the contestant's process used while it was loaded.
type Process struct {
	usage.Usage
	ReuseRate float64 `json:"reuse_rate"` // true reuse: Gets answered by an earlier Put; -1 without a pool
}

// Point is one step of a run's time line.
type Point struct {
	At         float64 `json:"at"` // seconds from the start of the run
	OK         uint64  `json:"ok"`
	Rejected   uint64  `json:"rejected"`
	Errors     uint64  `json:"errors"`
	Timeouts   uint64  `json:"timeouts"`
	Goroutines int     `json:"goroutines,omitempty"`
	RSS        uint64  `json:"rss_bytes,omitempty"`
	Limit      int     `json:"limit,omitempty"`      // the contestant's limit of concurrency
	InFlight   int     `json:"in_flight,omitempty"`  // admitted and not done
	Queued     int     `json:"queued,omitempty"`     // waiting for admission
	GC         float64 `json:"gc_share,omitempty"`   // the collector's part of the processor time, 0 to 1
	Work       float64 `json:"work_share,omitempty"` // the part of the work itself, 0 to 1
	Switches   uint64  `json:"switches,omitempty"`   // of threads, by the system, since the point before
}

// Latest keeps one run of each cell and repeat, where there are several because other processes
// disturbed one. A run that was measured replaces one that failed. Of two such runs the less disturbed
// one is kept, and of two that were disturbed alike the later one.
func Latest(runs []Run) []Run {
	type place struct {
		setup, load, pattern string
		twin                 bool
		repeat               int
	}
	best := map[place]int{}
	for i, r := range runs {
		at := place{r.Setup, r.Load, r.Pattern, r.Twin, r.Repeat}
		if old, ok := best[at]; !ok || r.replaces(runs[old]) {
			best[at] = i
		}
	}
	var out []Run
	for _, i := range slices.Sorted(maps.Values(best)) {
		out = append(out, runs[i])
	}
	return out
}

// replaces reports whether the run counts instead of an earlier one of the same cell and repeat.
func (r *Run) replaces(earlier Run) bool {
	if failed := r.Failed != ""; failed != (earlier.Failed != "") {
		return !failed
	}
	return r.Disturbed <= earlier.Disturbed
}

// Of returns the outcome of that kind; an absent one is empty.
func (r *Run) Of(kind string) Outcome {
	if i := slices.IndexFunc(r.Outcomes, func(o Outcome) bool { return o.Kind == kind }); i >= 0 {
		return r.Outcomes[i]
	}
	return Outcome{Kind: kind, Latency: &histogram.Histogram{}}
}

// Rate returns that kind's count per second of the run.
func (r *Run) Rate(kind string) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Of(kind).Count) / r.Elapsed
}

// Share returns that kind's share of all offered requests, 0 to 1.
func (r *Run) Share(kind string) float64 {
	if r.Offered == 0 {
		return 0
	}
	return float64(r.Of(kind).Count) / float64(r.Offered)
}

// Ratios is a figure of this run over that of the other in every round, since what
// disturbs a round disturbs both.
func (r *Run) Ratios(other *Run, figure string) []float64 {
	var out []float64
	theirs := other.Blocks[figure]
	for i, ours := range r.Blocks[figure] {
		if i < len(theirs) && ours > 0 && theirs[i] > 0 {
			out = append(out, ours/theirs[i])
		}
	}
	return out
}
