package claims

import judge "github.com/spillway-go/spillway/lab/oldjudge"

const sourceOverload = "Spillway's own promise"

// Overload is what this project promises for a limiter without configuration, in
// front of a backend with a knee, from half its capacity to ten times it.
var Overload = Family{
	ID:     "overload",
	Title:  "A patient API offered more than it can do",
	Source: sourceOverload,
	Claims: []Claim{OverloadGoodput, OverloadCritical, OverloadRival},
}

// OverloadGoodput takes pairs of good answers a second under one load: A Spillway
// without configuration, B what was possible: the best that any contestant reached
// under any load, or the offered load if that was less.
var OverloadGoodput = Claim{
	ID:        "overload/goodput",
	Title:     "without a number it answers at least 90 % of the best that any contestant answered under any load",
	Published: "at least 0.9x at every load",
	HoldsIf:   "goodput/best is at least 0.9",
	Question: judge.Question{
		Subject: "goodput of Spillway/what was possible", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtLeast(.9),
	},
	Source: sourceOverload,
	Note:   "What was possible is the best mean goodput of any contestant under any load, or what was offered, if that is less.",
}

// OverloadCritical takes the share, in per cent, of critical requests with good
// answers, of all that were sent or, if that is less, of the best contestant's
// goodput.
var OverloadCritical = Claim{
	ID:        "overload/critical",
	Title:     "at least 99 % of the critical requests are answered well, as far as they fit",
	Published: "at least 99 % at every load",
	HoldsIf:   "the answered share is at least 99 %",
	Question: judge.Question{
		Subject: "critical requests answered well", Unit: "%",
		Figure: judge.Mean, Rule: judge.AtLeast(99),
	},
	Source: sourceOverload,
	Note:   "A fifth of the requests is critical. At ten times the capacity that alone is twice what the service can do, at five times exactly as much; there the share is of what fits.",
}

// OverloadRival takes pairs of good answers a second under one load: A the best
// of the other contestants, B Spillway without configuration.
var OverloadRival = Claim{
	ID:        "overload/rival",
	Title:     "no contestant answers over 5 % more",
	Published: "at most 1.05x at every load",
	HoldsIf:   "goodput of the best rival/goodput is at most 1.05",
	Question: judge.Question{
		Subject: "goodput of the best rival/Spillway", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtMost(1.05),
	},
	Source: sourceOverload,
	Note:   "Three of the rivals were told the size of the database, which an operator has to guess.",
}
