package oldjudge_test

import (
	"fmt"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
)

func ExampleJudge() {
	question := judge.Question{
		Subject: "naive/pool throughput", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Between(4, 5),
	}
	answer := judge.Judge(question, judge.Input{
		Seed: 1,
		Pairs: []judge.Pair{ // one for each repeat
			{A: 1115, B: 260},
			{A: 1098, B: 257},
			{A: 1121, B: 259},
		},
	})
	fmt.Println(answer.Verdict)
	fmt.Println(answer.Why)
	// Output:
	// holds
	// naive/pool throughput was 4.30x (4.23–4.38; geometric mean of 3 paired ratios), inside 4–5x.
}
