package judge_test

import (
	"fmt"

	"github.com/spillway-go/spillway/load/judge"
)

func ExampleJudge() {
	question := judge.Question{
		Subject: "naive/workerpool throughput", Unit: "x",
		Ratio: true, Rule: judge.Between(4, 5), Spread: 0.03,
	}
	answer := judge.Judge(question, judge.Input{
		Values: []float64{4.29, 4.27, 4.33, 4.31, 4.38, 4.30, 4.34}, // one for each repeat
		Floor:  []float64{0.004, -0.011, 0.002, 0.007, -0.003, -0.008, 0.005},
	})
	fmt.Println(answer.Verdict)
	fmt.Println(answer.Why)
	// Output:
	// holds
	// naive/workerpool throughput was 4.31x (4.28–4.35, median of 7 repeats), which is inside 4–5x, clear of the bounds by more than the 3 % by which sessions differ.
}
