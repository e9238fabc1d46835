package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// document is the page of a whole run.
func document(results []result, at time.Time, machine string) []byte {
	var b bytes.Buffer
	var elapsed time.Duration
	for _, r := range results {
		elapsed += r.Took
	}
	fmt.Fprintf(&b, `# The soak

What is about real time, and therefore not part of the gate (CONTRIBUTING.md, Tests): kills, storms, latencies, rates, memory of processes.
`+"`make soak`"+` runs it, one thing at a time; `+"`make soak NAMES=jobqueue`"+` a part of it. Last whole run: %s, %s; it took %v.

| name | took | figure | was | bound | why this bound |
|---|---|---|---|---|---|
`, at.UTC().Format("2 January 2006 15:04 UTC"), machine, elapsed.Round(time.Second))
	for _, r := range results {
		name, seconds := r.Name, fmt.Sprintf("%.0f s", r.Took.Seconds())
		if len(r.Figures) == 0 {
			verdict := "passed"
			if r.Failed {
				verdict = "**failed**"
			}
			row(&b, name, seconds, r.Asks, verdict, "", "")
			continue
		}
		for _, f := range r.Figures {
			got := f.Got
			if !f.Held {
				got = "**" + got + "**"
			}
			row(&b, name, seconds, f.Name, got, f.Bound, f.Why)
			name, seconds = "", ""
		}
		if r.Failed {
			row(&b, "", "", "the test itself", "**failed**", "", "")
		}
	}
	return b.Bytes()
}

func row(b *bytes.Buffer, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(strings.ReplaceAll(c, "|", `\|`), "\n", " ") + " ")
	}
	b.WriteString("|\n")
}

var tookRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| (\d+) s \|`)

// expected says how long items take, by the last results.
func expected(items []item, last string) string {
	seconds := map[string]int{}
	for _, m := range tookRow.FindAllStringSubmatch(last, -1) {
		var s int
		fmt.Sscan(m[2], &s)
		seconds[m[1]] = s
	}
	sum, unknown := 0, 0
	for _, it := range items {
		if s, ok := seconds[it.Name]; ok {
			sum += s
		} else {
			unknown++
		}
	}
	text := fmt.Sprintf("%v by the last results", (time.Duration(sum) * time.Second).Round(time.Second))
	if unknown > 0 {
		text += fmt.Sprintf(" and %d new", unknown)
	}
	return text
}
