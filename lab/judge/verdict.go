package judge

// Verdict is the answer to a claim.
type Verdict string

// The four verdicts of the claims ledger.
const (
	Holds         Verdict = "holds"
	Fails         Verdict = "fails"
	Inconclusive  Verdict = "inconclusive"
	NeedsHardware Verdict = "needs hardware"
)
