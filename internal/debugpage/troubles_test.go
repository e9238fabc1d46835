package debugpage

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limiter"
)

var renew = flag.Bool("update", false, "renew testdata/troubles.txt")

// recording is a trouble as lab/contestants/troubles has recorded it.
type recording struct {
	began   time.Time
	trouble time.Duration // when the trouble begins
	at      []time.Duration
	seen    []picture
}

// readRecording reads a file of lines of JSON, each a header, Stats, or what other tests need.
func readRecording(file string) (r recording, err error) {
	f, err := os.Open(file)
	if err != nil {
		return r, err
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		return r, err
	}
	for lines := bufio.NewReader(text); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return r, nil
		} else if err != nil {
			return r, err
		}
		var l struct {
			Header *struct {
				Began   time.Time
				Trouble float64
			}
			At    float64
			Stats *struct {
				limiter.Stats
				Processors inside.Processors
				Pressure   inside.Pressure
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return r, err
		}
		seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
		if l.Header != nil {
			r.began, r.trouble = l.Header.Began, seconds(l.Header.Trouble)
		}
		if s := l.Stats; s != nil {
			s.Service = new(histogram.Histogram) // left out, since kinds add up to Service
			for _, k := range s.ByKind {
				s.Service.Merge(k.Service)
			}
			r.at, r.seen = append(r.at, seconds(l.At)), append(r.seen, picture{Stats: s.Stats, Processors: s.Processors, Pressure: s.Pressure, open: true})
		}
	}
}

// told is what a page tells at first sight: the headline, the badge, and what to do.
type told struct{ headline, badge, advice string }

var (
	badge  = regexp.MustCompile(`<span class="badge [^>]*>.*?</span>`)
	advice = regexp.MustCompile(`What to do: ([^<]*)`)
)

// replay shows a page all that was recorded, at the recorded times, and returns what the page tells at each.
func (r *recording) replay() []told {
	i := 0
	page := newPage(1, func() []picture { return r.seen[i : i+1] })
	page.watches[0].created = r.began
	all := make([]told, len(r.seen))
	for i = range r.seen {
		page.refresh(r.began.Add(r.at[i]), 0)
		for _, s := range page.sections {
			switch s.id {
			case "summary":
				all[i].headline = textOf(s.html)
			case "limiter-1":
				all[i].badge = textOf(badge.FindString(s.html))
				if found := advice.FindStringSubmatch(s.html); found != nil {
					all[i].advice = textOf(found[1])
				}
			}
		}
	}
	return all
}

// What the page tells of real troubles, near their ends, is in a golden file to be read as a whole.
func TestWhatThePageTellsOfRecordedTroubles(t *testing.T) {
	soak.WithoutRace(t) // it makes the page two thousand times
	files, err := filepath.Glob("testdata/troubles/*.jsonl.gz")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	var table strings.Builder
	for _, file := range files {
		r, err := readRecording(file)
		if err != nil || len(r.seen) == 0 {
			t.Fatalf("%s: %d pictures, %v", file, len(r.seen), err)
		}
		// In a real trouble no look is quite like another: what most looks of the last half minute tell.
		times, most := map[told]int{}, told{}
		last := r.at[len(r.at)-1]
		for i, what := range r.replay() {
			if last-r.at[i] > 30*time.Second {
				continue
			}
			if times[what]++; times[what] > times[most] {
				most = what
			}
		}
		fmt.Fprintf(&table, "%s\n  headline: %s\n  badge:    %s\n  advice:   %s\n", strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), most.headline, most.badge, most.advice)
	}
	const golden = "testdata/troubles.txt"
	if *renew {
		if err := os.WriteFile(golden, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := table.String(); got != string(want) {
		t.Errorf("%s is not up to date: look at what differs, then renew it with go test ./internal/debugpage -run Recorded -args -update; it would be\n%s", golden, got)
	}
}
