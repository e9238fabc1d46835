package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const events = `{"Action":"start","Package":"github.com/spillway-go/spillway/a"}
{"Action":"run","Package":"github.com/spillway-go/spillway/a","Test":"TestGood"}
{"Action":"output","Package":"github.com/spillway-go/spillway/a","Test":"TestGood","Output":"chatter\n"}
{"Action":"pass","Package":"github.com/spillway-go/spillway/a","Test":"TestGood/part","Elapsed":9}
{"Action":"pass","Package":"github.com/spillway-go/spillway/a","Test":"TestGood","Elapsed":1.5}
{"Action":"output","Package":"github.com/spillway-go/spillway/a","Test":"TestLeft","Output":"=== RUN   TestLeft\n"}
{"Action":"output","Package":"github.com/spillway-go/spillway/a","Test":"TestLeft","Output":"    a_test.go:12: no Redis: start one\n"}
{"Action":"output","Package":"github.com/spillway-go/spillway/a","Test":"TestLeft","Output":"--- SKIP: TestLeft (0.00s)\n"}
{"Action":"skip","Package":"github.com/spillway-go/spillway/a","Test":"TestLeft"}
{"Action":"pass","Package":"github.com/spillway-go/spillway/a","Elapsed":2}
{"Action":"output","Package":"github.com/spillway-go/spillway/b","Test":"TestBad","Output":"    b_test.go:3: 1, want 2\n"}
{"Action":"fail","Package":"github.com/spillway-go/spillway/b","Test":"TestBad","Elapsed":3}
{"Action":"output","Package":"github.com/spillway-go/spillway/b","Output":"exit status 1\n"}
{"Action":"fail","Package":"github.com/spillway-go/spillway/b","Elapsed":3}
`

func TestWhatFailedIsShownAndTheRestCounted(t *testing.T) {
	var out bytes.Buffer
	s, err := read(strings.NewReader(events+"warning: from elsewhere\n"), &out)
	if err != nil {
		t.Fatal(err)
	}
	want := "ok      spillway/a 2.0s, 1 tests, 1 skipped\n    b_test.go:3: 1, want 2\nexit status 1\nFAIL    spillway/b 3.0s\nwarning: from elsewhere\nfailed: b.TestBad\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if s.Tests != 2 || s.Failed != 1 || fmt.Sprint(s.Skipped) != "[{a.TestLeft no Redis: start one}]" || fmt.Sprint(s.Slowest) != "[{b.TestBad 3} {a.TestGood 1.5}]" {
		t.Errorf("counted %+v", s)
	}
}

func TestAPackageThatDoesNotRunHasFailed(t *testing.T) {
	for what, lines := range map[string]string{
		"does not build": `{"ImportPath":"a","Action":"build-output","Output":"a.go:1: syntax\n"}
{"ImportPath":"a","Action":"build-fail"}
{"Action":"output","Package":"a","Output":"FAIL\ta [build failed]\n"}
{"Action":"fail","Package":"a","FailedBuild":"a"}
`,
		"its process ends": `{"Action":"run","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Test":"TestX","Output":"panic: syntax\n"}
{"Action":"fail","Package":"a"}
`,
	} {
		var out bytes.Buffer
		s, err := read(strings.NewReader(lines), &out)
		if err != nil || s.Failed != 1 || !strings.Contains(out.String(), "syntax") || !strings.Contains(out.String(), "FAIL    a") || !strings.HasSuffix(out.String(), "failed: a\n") || strings.Contains(lines, "TestX") != strings.Contains(out.String(), "failed: a.TestX (never ended)\n") {
			t.Errorf("%s: failed %d, error %v, printed %q", what, s.Failed, err, out.String())
		}
	}
}

func TestTheTableAddsUp(t *testing.T) {
	var file, out bytes.Buffer
	enc := json.NewEncoder(&file)
	enc.Encode(step{Step: "vet", Seconds: 10})
	enc.Encode(step{Step: "tests", Seconds: 100, Tests: 7, Skipped: []skip{{"a.TestA", "no Redis"}, {"a.TestB", "no Redis"}}, Slowest: []timed{{"a.TestC", 5}, {"a.TestD", 2}}})
	enc.Encode(step{Step: "allocations", Seconds: 5, Tests: 2, Slowest: []timed{{"b.TestE", 3}}})
	if err := show(&out, &file); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	want := "step seconds tests skipped vet 10 tests 100 7 2 allocations 5 2 all 115 9 2 skipped: no Redis: a.TestA, a.TestB slowest tests: 5.0 s a.TestC 3.0 s b.TestE 2.0 s a.TestD"
	if got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
