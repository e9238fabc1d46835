// Package judge decides whether a claim holds, and says how sure it is.
//
// Contestants run in interleaved repeats, so that a slow minute of the machine falls on
// all of them. Each repeat gives one value: a figure, or the ratio or difference of two
// contestants within the repeat, in which what both share cancels.
//
// # The interval
//
// The estimate is the median over the repeats, and its interval lies between two order
// statistics: each repeat is under the true median with probability 1/2, so the share of
// wrong intervals is a binomial sum (the sign test) that is exact for any continuous noise.
// Of five repeats it is the whole range, with 93.75 %; of 7, 10 and 20 the widest tails with
// an error of at most 1/16 give 98.4, 97.9 and 95.9 %. Student's t, with a nominal 95 %,
// contains the mean of 5 exponential values in 88 % and of lognormal ones in 82 %; the signed
// rank contains the median of ten of which two were disturbed in 82 to 90 %, the sign test
// in 96 %. Fewer than five repeats give no verdict.
//
// A session may be resumed and looked at again. Each look halves the error that it allows,
// so that over all looks at most 12.5 % of the intervals miss the truth, and at most half of
// that, 6.25 %, on the one side that makes a verdict at a bound wrong. [Every] and [Never]
// need no such correction: they hold only if the first five repeats already did.
//
// So a session may stop early where it has decided and go on where it has not: a claim keeps
// the first verdict that is decisive, and pays for the looks at which it had none. That is
// the rule of which the self-test counts the wrong verdicts in three looks.
//
// # The verdict
//
// A [Rule] is a range. A claim holds if the interval lies inside of it, and fails if it
// lies outside on one side. Two things must be clear of the bounds as well: the whole
// interval by what sessions are known to differ by ([Question.Spread]), because a session
// shifts all of its repeats, and the median by what a contestant differs from itself (A/A),
// because less than that is no difference. The A/A floor is the 90th percentile of single
// differences; it does not shrink with more repeats, on purpose. It is not asked of the
// ends of the interval, which contain that noise already. Hence Above(1) is "more, beyond
// noise", and Between(0.9, 1.1) "no difference larger than 10 %", which can hold, as "no
// difference seen" cannot. A figure within a margin of a bound is at the edge.
// [Selftest] measures all this.
package judge
