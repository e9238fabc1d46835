package judge

// Verdict is the judge's answer.
type Verdict string

// The four verdicts of the claims ledger.
const (
	Holds         Verdict = "holds"
	Fails         Verdict = "fails"
	Inconclusive  Verdict = "inconclusive"
	NeedsHardware Verdict = "needs hardware"
)

type Rule struct {
	Low, Top float64
	Open     bool
	Outside  bool
}

func (Rule) Contains(x float64) bool  { return false }
func (Rule) Words(unit string) string { return "" }

type Kind uint8

const (
	Median Kind = iota
	Every
	Never
)
const MinRepeats = 5

type Question struct {
	Subject, Unit    string
	Kind             Kind
	Ratio            bool
	Rule             Rule
	Spread, Min, Max float64
}
type Input struct {
	Values, Floor []float64
	Looks         int
	Disturbed     []int
	Missing       string
	Seed          uint64
}
type Answer struct {
	Verdict                    Verdict
	Measured, Low, High, Floor float64
	Repeats, MoreRuns          int
	AtEdge                     bool
	Why                        string
}

func Judge(q Question, in Input) Answer { return Answer{} }
func All(...Verdict) Verdict            { return Holds }
func Any(...Verdict) Verdict            { return Holds }
