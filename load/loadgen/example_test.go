package loadgen_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
)

func ExampleRun() {
	result, err := loadgen.Run(context.Background(), loadgen.Config{
		Closed: &loadgen.Closed{Clients: 3, Requests: 10},
		Target: loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
			if n%5 == 4 {
				return loadgen.Rejected
			}
			return loadgen.OK
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range loadgen.Outcomes() {
		fmt.Println(o, result.Outcomes[o].Count)
	}
	// Output:
	// ok 8
	// rejected 2
	// error 0
	// timeout 0
}

func ExampleTimes() {
	for at := range loadgen.Times(loadgen.Constant(4, time.Second)) {
		fmt.Println(at)
	}
	// Output:
	// 0s
	// 250ms
	// 500ms
	// 750ms
}

// A ramp to four requests a second, and then that rate.
func ExampleEven() {
	for at := range loadgen.Times(loadgen.Even(loadgen.Leg{From: 0, To: 4, For: 2 * time.Second}, loadgen.Steady(4, time.Second))) {
		fmt.Println(at.Round(time.Millisecond))
	}
	// Output:
	// 0s
	// 1s
	// 1.414s
	// 1.732s
	// 2s
	// 2.25s
	// 2.5s
	// 2.75s
}

// Every fifth request is critical, and the server refuses the others.
func ExampleMix() {
	answer := func(o loadgen.Outcome) loadgen.Target {
		return loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome { return o })
	}
	target, err := loadgen.Mix(3,
		loadgen.Part{Class: "critical", Weight: 1, Target: answer(loadgen.OK)},
		loadgen.Part{Class: "low", Weight: 4, Target: answer(loadgen.Rejected)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := loadgen.Run(context.Background(), loadgen.Config{Target: target, Closed: &loadgen.Closed{Clients: 3, Requests: 1000}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range result.Classes {
		fmt.Println(c.Name, c.Outcomes[loadgen.OK].Count, c.Outcomes[loadgen.Rejected].Count)
	}
	// Output:
	// critical 200 0
	// low 0 800
}

// Requests that take their URLs from a file, here of two rows.
func ExampleReadCSV() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println(r.URL) }))
	defer server.Close()
	data, err := loadgen.ReadCSV(strings.NewReader("id,name\nP1,Ada\nP2,Grace H.\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: server.URL + "/patients/{{.id}}?name={{.name}}&n={{n}}", Data: data})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer target.Close()
	if _, err := loadgen.Run(context.Background(), loadgen.Config{Target: target, Closed: &loadgen.Closed{Clients: 1, Requests: 3}}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// /patients/P1?name=Ada&n=0
	// /patients/P2?name=Grace+H.&n=1
	// /patients/P1?name=Ada&n=2
}

func ExampleParseExpectation() {
	result, err := loadgen.Run(context.Background(), loadgen.Config{
		Open:   loadgen.Poisson(1000, 20*time.Millisecond, 1),
		Target: loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome { return loadgen.OK }),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"ok>=99%", "error<1%", "p98<200ms"} {
		bound, err := loadgen.ParseExpectation(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		ok, measured := bound.Check(result)
		fmt.Println(bound, ok, measured)
	}
	// Output:
	// ok>=99% true 100.00%
	// error<1% true 0.00%
	// loadgen: expectation "p98<200ms": no metric "p98": want p50, p90, p95, p99, p99.9, mean, min or max, also of another outcome as in rejected.p99 or of the send lag as in lag.p99; goodput; or ok, rejected, error or timeout
}
