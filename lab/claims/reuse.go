package claims

import judge "github.com/spillway-go/spillway/lab/oldjudge"

// Reuse is what this project promises for its object pool, compared with the
// alternatives.
var Reuse = Family{
	ID:     "reuse",
	Title:  "Objects reused: fresh, sync.Pool, a channel, objectpool",
	Source: "Spillway's own promise",
	Claims: []Claim{
		ReuseHits, ReuseStrong, ReuseIdle, ReuseCounted,
		ReuseCycle, ReuseAllocs, ReuseDirty,
		ReuseMisuse, ReuseOutlier,
	},
}

// ReuseHits takes the share, in per cent, of Gets in bursts that reused an object.
var ReuseHits = promise("reuse-1/hits", "bursts with idle gaps find their objects again", "at least 99.5 %",
	judge.Question{Subject: "true reuse in bursts", Unit: "%", Figure: judge.Mean, Rule: judge.AtLeast(99.5)},
	"Bursts of 100 ms, gaps of 300 ms with two collections, 1,000 users. Counted where objects are made. The first burst makes them and is left out.")

// ReuseStrong takes the most objects held over the most that were in use.
var ReuseStrong = promise("reuse-1/strong", "no more is held than the recent peak needed", "at most 1.25x",
	judge.Question{Subject: "the most objects held/in use", Unit: "x", Figure: judge.Peak, Rule: judge.AtMost(1.25)}, "")

// ReuseIdle takes the share, in per cent, that is still held after a minute.
var ReuseIdle = promise("reuse-1/idle", "after 60 s without use at most 10 % is held", "at most 10 %",
	judge.Question{Subject: "the share of the peak held after a minute", Unit: "%", Figure: judge.Peak, Rule: judge.AtMost(10)}, "")

// ReuseCounted takes how far the reported count of reuse is off.
var ReuseCounted = promise("reuse-1/counted", "the reported rate of reuse is the counted one", "no difference",
	judge.Question{Subject: "the difference between objects made and reported", Figure: judge.Peak, Rule: judge.AtMost(0)}, "")

// ReuseCycle takes the time per get, clear and put of 1 KB by objectpool over
// that by sync.Pool with the same clearing.
var ReuseCycle = promise("reuse-2/cycle", "get, clear and put of 1 KB cost at most a quarter more than by sync.Pool", "at most 1.25x",
	judge.Question{Subject: "time per cycle, objectpool/sync.Pool", Unit: "x", Figure: judge.Ratio, Rule: judge.AtMost(1.25)},
	"Both clear in the same way and take turns in one process. The ratio is taken within a round; the median of those counts.")

// ReuseAllocs takes allocations for a thousand cycles of 1 KB.
var ReuseAllocs = promise("reuse-2/allocations", "and allocate nothing", "0",
	judge.Question{Subject: "allocations for 1,000 cycles", Figure: judge.Peak, Rule: judge.Below(1)},
	"A thousand, because the harness starts goroutines.")

// ReuseDirty takes pairs of time per cycle: A a buffer of 500 KB of which 1 KB
// was written, B one of 1 KB.
var ReuseDirty = promise("reuse-2/dirty", "a buffer of 500 KB with 1 KB written costs at most twice one of 1 KB", "at most 2x",
	judge.Question{Subject: "time per cycle, 500 KB/1 KB", Unit: "x", Figure: judge.Ratio, Rule: judge.AtMost(2)}, "")

// ReuseMisuse takes the share, in per cent, of seeded bugs that were caught.
var ReuseMisuse = promise("reuse-3", "seeded misuse is caught every time", "20 of 20",
	judge.Question{Subject: "seeded bugs caught", Unit: "%", Figure: judge.Mean, Rule: judge.AtLeast(100)}, "")

// ReuseOutlier takes pairs of resident memory: A after one object of 64 MiB, B
// without it.
var ReuseOutlier = promise("reuse-4", "one object of 64 MiB leaves no trace in memory", "within 5 %",
	judge.Question{Subject: "resident memory with/without the outlier", Unit: "x", Figure: judge.Ratio, Rule: judge.AtMost(1.05)}, "")

func promise(id, title, published string, q judge.Question, note string) Claim {
	return Claim{
		ID: id, Title: title, Published: published, HoldsIf: q.Subject + ": " + published,
		Question: q, Source: "Spillway's own promise", Note: note,
	}
}
