// Package judge decides whether a claim holds, and says how sure it is.
//
// Contestants run in interleaved repeats, so that a slow minute of the machine falls on
// all of them. Each repeat gives one value: a figure, or the ratio or difference of two
// contestants within the repeat, in which what both share cancels.
//
// # The interval
//
// The estimate is the median over the repeats. Its interval lies between order statistics: each
// repeat is under the true median with probability 1/2, so the share of wrong intervals is a
// binomial sum (the sign test), for any continuous noise. The ends are interpolated, so that one
// interval in sixteen misses the median: 93.75 %, for any number of repeats. Of five repeats the
// interval is the whole range. Student's t, with a nominal 95 %, contains the mean of 5 exponential
// values in 88 % and of lognormal ones in 82 %; the signed rank contains the median of ten of which
// two were disturbed in 82 to 90 %, the sign test in 96 %.
//
// An interval decides nothing before the seventh repeat, because fewer do not show whether they follow
// each other. Five are enough for [Every] and [Never], and for a figure that is the same in each repeat
// and has no noise floor, as an exact count.
//
// A session may be resumed and looked at again. Each look halves the error that it allows,
// so that over all looks at most 12.5 % of the intervals miss the truth, and at most half of
// that, 6.25 %, on the one side that makes a verdict at a bound wrong. [Every] and [Never]
// need no such correction: they hold only if the first five repeats already did.
// What had fewer repeats than any verdict takes ([Answer.Few]) was no look.
//
// So a session may stop early where it has decided and go on where it has not: a claim keeps
// the first verdict that is decisive, and pays for the looks at which it had none. That is the whole
// rule by which a session stops. With independent repeats and the truth at a bound, the self-test counts
// 3.0 to 3.6 % of wrong verdicts in three looks, where 5 % are allowed: at 7, 14 and 28 repeats, and as
// [Answer.MoreRuns] advises.
//
// # What is assumed
//
// Repeats are taken to be independent, or to follow each other like a first-order process. Their
// lag-1 correlation ([Follow]) stands beside a verdict, and the interval is wider where it is more
// than chance. Seven repeats often do not show a correlation of 0.5. There the A/A margin keeps wrong
// verdicts away: in three looks 0.2 % are wrong. Without A/A 10 % are. What shifts a whole session is in no interval: that
// is what [Question.Spread] is for.
//
// # The verdict
//
// A [Rule] is a range. A claim holds if the interval lies inside of it, and fails if it
// lies outside on one side. Two things must be clear of the bounds as well: the whole
// interval by what sessions are known to differ by ([Question.Spread]), because a session
// shifts all of its repeats, and the median by what a contestant differs from itself (A/A).
// A/A is a test of its own: its margin is the far end of the interval of the median difference, so
// the margin is smaller with more repeats, but never smaller than the bias of the instrument. If
// that interval excludes 0, and by enough to matter for the rule, the comparison is void. The
// margin is not asked of the ends of the interval, which contain the noise of one repeat already.
// Hence Above(1) is "more, beyond noise", and Between(0.9, 1.1) "no difference larger than 10 %",
// which can hold, as "no difference seen" cannot. A figure within a margin of a bound is at the
// edge.
//
// A claim of several parts has several chances to fail wrongly. [Answer.Chance] is what [Holm]
// corrects for that. The self-test counts both.
//
// [Selftest] measures all this.
package judge
