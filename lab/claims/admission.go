package claims

import judge "github.com/spillway-go/spillway/lab/oldjudge"

const sourceOverload = "Spillway's own promise"

// Admission is what this project promises for its HTTP middleware with an adaptive
// limiter that was told no number.
var Admission = Family{
	ID:     "admission",
	Title:  "The HTTP middleware in front of a service: a storm, clients that leave, a dry run, hostile clients",
	Source: sourceOverload,
	Claims: []Claim{
		AdmissionGoodput, AdmissionCritical, AdmissionWaves, AdmissionLeavers,
		AdmissionDryRun, AdmissionPrediction, AdmissionWarning, AdmissionProbes, AdmissionMemory,
	},
}

// AdmissionGoodput takes pairs of good answers a second: A at three times the
// capacity, B the capacity, measured in a closed loop without a limit.
var AdmissionGoodput = Claim{
	ID:        "admission/goodput",
	Title:     "at three times the capacity, with retries, it answers at least 95 % of the capacity",
	Published: "at least 0.95x",
	HoldsIf:   "goodput/capacity is at least 0.95",
	Question:  judge.Question{Subject: "goodput/capacity", Unit: "x", Figure: judge.Ratio, Rule: judge.AtLeast(.95)},
	Source:    sourceOverload,
}

// AdmissionCritical takes the share, in per cent, of critical requests with good
// answers.
var AdmissionCritical = Claim{
	ID:        "admission/critical",
	Title:     "at three times the capacity at least 99 % of the critical requests are answered well",
	Published: "at least 99 %",
	HoldsIf:   "the answered share is at least 99 %",
	Question:  judge.Question{Subject: "critical requests answered well", Unit: "%", Figure: judge.Mean, Rule: judge.AtLeast(99)},
	Source:    sourceOverload,
	Note:      "A fifth of the requests is critical: 0.6 times the capacity, so that all of them fit.",
}

// AdmissionWaves takes the most requests that arrived within 100 ms of each other,
// retries included, over the mean.
var AdmissionWaves = Claim{
	ID:        "admission/waves",
	Title:     "retries come back spread out: no 100 ms after the first refusal have over three times the mean arrivals",
	Published: "at most 3x",
	HoldsIf:   "the most arrivals in 100 ms are at most 3 times the mean",
	Question:  judge.Question{Subject: "most arrivals in 100 ms/mean", Unit: "x", Figure: judge.Mean, Rule: judge.AtMost(3)},
	Source:    sourceOverload,
}

// AdmissionLeavers takes pairs of good answers a second to the clients that stay: A
// by the adaptive limiter, B what there was for them.
var AdmissionLeavers = Claim{
	ID:        "admission/leavers",
	Title:     "when a third of the clients leaves after half of the service time, the others get at least 90 % of what there is for them",
	Published: "at least 0.9x",
	HoldsIf:   "goodput of the others/their capacity is at least 0.9",
	Question:  judge.Question{Subject: "goodput of those that stay/their capacity", Unit: "x", Figure: judge.Ratio, Rule: judge.AtLeast(.9)},
	Source:    sourceOverload,
	Note:      "Their capacity is the backend's without what those that leave use of it, or what a limiter of exactly the right size achieves in the same storm, if that is more.",
}

// AdmissionDryRun takes the number of requests that a dry run refused.
var AdmissionDryRun = Claim{
	ID:        "admission/dry-run",
	Title:     "a dry run at twice the capacity refuses nothing",
	Published: "0 refused",
	HoldsIf:   "no request is refused",
	Question:  judge.Question{Subject: "requests refused in a dry run", Unit: "", Figure: judge.Peak, Rule: judge.AtMost(0)},
	Source:    sourceOverload,
}

// AdmissionPrediction takes the largest difference, in percentage points over the
// priorities, between the share that a dry run would have refused and the share that
// is refused.
var AdmissionPrediction = Claim{
	ID:        "admission/prediction",
	Title:     "a dry run predicts the share that will be refused of each priority within 10 percentage points",
	Published: "within 10 points",
	HoldsIf:   "the largest difference of a priority is at most 10 points",
	Question:  judge.Question{Subject: "largest difference of predicted and refused", Unit: "points", Figure: judge.Mean, Rule: judge.AtMost(10)},
	Source:    sourceOverload,
}

// AdmissionWarning takes 100 for each dry run whose report said rightly at its end
// whether the estimate is safe to act upon, else 0.
var AdmissionWarning = Claim{
	ID:        "admission/warning",
	Title:     "a dry run's report says that its estimate is unsafe where the backend gets less done the more it is asked, and only there",
	Published: "always",
	HoldsIf:   "every report is right",
	Question:  judge.Question{Subject: "reports that are right", Unit: "%", Figure: judge.Mean, Rule: judge.AtLeast(100)},
	Source:    sourceOverload,
}

// AdmissionProbes takes the slowest answer to a health probe, in milliseconds.
var AdmissionProbes = Claim{
	ID:        "admission/probes",
	Title:     "health probes are answered in under 100 ms throughout, whatever hostile clients do",
	Published: "below 100 ms",
	HoldsIf:   "the slowest answer takes less than 100 ms",
	Question:  judge.Question{Subject: "slowest answer to a probe", Unit: "ms", Figure: judge.Peak, Rule: judge.Below(100)},
	Source:    sourceOverload,
}

// The memory that a server under attack may use: what it uses anyway, and what a
// connection costs.
const (
	HostileMemory           = 64 << 20
	HostileMemoryConnection = 32 << 10
)

// AdmissionMemory takes the peak of the server's resident memory, in per cent of
// HostileMemory and HostileMemoryConnection for each connection.
var AdmissionMemory = Claim{
	ID:        "admission/memory",
	Title:     "meanwhile its memory stays within 64 MiB and 32 KiB for each connection",
	Published: "at most 100 % of the bound",
	HoldsIf:   "peak resident memory is at most 100 % of 64 MiB + 32 KiB for each connection",
	Question:  judge.Question{Subject: "peak resident memory/bound", Unit: "%", Figure: judge.Peak, Rule: judge.AtMost(100)},
	Source:    sourceOverload,
}
