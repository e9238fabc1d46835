// Package ledger says what a claim is and decides it from the raw runs of a session.
//
// A [Claim] is a row of data: its parts, for each part the rule and the published
// figures, and for each set-up a [Term], which says how the figures of the cells
// become one value for each repeat. There is no code that judges one claim; the words
// of a verdict are made from the row. A [Family] is the claims of one experiment with
// what a report needs to know about it.
//
// A figure that a run does not have is missing, and the verdict names it. It is never
// taken for 0.
package ledger
