// Package oldjudge decides whether a claim holds, and says how sure it is.
//
// # What it is given
//
// Contestants run in interleaved repeats, so that a slow minute of the machine
// falls on all of them. Each repeat gives one value, or a pair (a, b) of which
// only the ratio or the difference within the repeat counts: what both runs of
// a repeat share, such as drift, cancels. Ratios are averaged on the log scale,
// where twice and half are equally far from one.
//
// # The interval
//
// The estimate is the mean over the repeats. Its 95 % interval comes from a
// seeded bootstrap: draw n repeats with replacement, take the mean, some
// thousand times, and take the middle 95 % of those means (Efron and
// Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13). With three to
// ten repeats this percentile interval is far too narrow, for two reasons
// given by Hesterberg (What Teachers Should Know About the Bootstrap, The
// American Statistician 69:4, 2015): resampling has the variance of dividing
// by n instead of n−1, and it ignores that the spread itself is only estimated.
// Hesterberg widens the interval by reading more extreme percentiles of the
// same means. That cannot work for three repeats, since no resampled mean lies
// beyond the smallest or largest repeat. So we keep the percentiles and stretch
// their distance from the estimate by
//
//	t(n−1, 0.975) / 1.96 · √(n/(n−1))
//
// which turns a normal bootstrap distribution into exactly Student's interval,
// keeps the lopsidedness that the repeats show, and tends to 1 as n grows. Over
// 4,000 experiments each, with 3 to 10 repeats, it contains the truth in 94 to
// 96 % for normal and for heavy-tailed noise, where the plain percentile
// interval has 75 to 90 %, and in about 90 % for strongly skewed (exponential)
// values, about which so few repeats say no more. Fewer than three repeats
// give no interval and no verdict.
//
// # The noise floor
//
// One of the contestants runs twice in every repeat (A/A). The difference between
// such twins is no effect. The floor is the 90th percentile of their
// absolute differences (log ratios for ratios), by nearest rank: the largest
// one while there are fewer than ten, and after that no longer determined by a
// single bad run. It is a floor for single pairs and therefore does not
// shrink with more repeats, on purpose: a difference that the same program
// shows against itself is not worth acting on, however surely it is there.
//
// # The verdict
//
// A [Rule] is a range of values. If both ends of the interval are in it, the
// claim holds; if both ends are outside on the same side, it fails; otherwise
// it is inconclusive, and the answer names how many further repeats would
// settle it if the estimate and the spread stayed as they are. A rule that asks
// for a difference beyond noise holds when the whole interval is past the floor
// in the right direction, fails when it is past the floor in the wrong one, and
// is inconclusive otherwise: "no difference seen" is not a verdict.
//
// A [Peak] is counted, not estimated: the largest value of any repeat, for bounds
// that must always hold and events that must happen at least once.
//
// The same input and seed give the same answer. [Selftest] plants known effects and
// counts the verdicts of a judge on them.
package oldjudge
