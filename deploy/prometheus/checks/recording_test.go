package checks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// recordings is written by lab/contestants/troubles.
const recordings = "../../../internal/debugpage/testdata/troubles"

const (
	// scraped is how often a Prometheus looks at the service. It sees every third recorded scrape.
	scraped = 15 * time.Second
	every   = 3
	// earlier and later are how much longer than recorded a scene lasts. Before its begin it is as in its calm time, and
	// after its end as in the last minute of its trouble.
	earlier = time.Hour
	later   = 20 * time.Minute // the alerts of a trouble that lasts take ten
)

// epoch is the time of the first scrape.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// recording is a scene as a Prometheus has it.
type recording struct {
	name    string
	trouble time.Duration // from the first scrape to the begin of the trouble
	end     time.Duration // from the first scrape to the last that was recorded
	series  []*series
}

// series has a value for each scrape. A value is missing before the series was there.
type series struct {
	labels labels.Labels
	first  int // scrape of the first value
	values []float64
}

// recorded returns all recordings, ordered by name.
func recorded(t *testing.T) []*recording {
	t.Helper()
	all, err := readAll()
	if want := len(named) + 2; err != nil || len(all) != want { // with a calm scene and a dry run
		t.Fatalf("%d recordings, want %d: %v", len(all), want, err)
	}
	return all
}

var readAll = sync.OnceValues(func() (all []*recording, err error) {
	files, err := filepath.Glob(recordings + "/*.jsonl.gz")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		r, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, r)
	}
	return all, nil
})

func read(file string) (*recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	r := &recording{name: strings.TrimSuffix(filepath.Base(file), ".jsonl.gz")}
	found := map[string]*series{} // by labels
	scrapes, seen := 0, 0
	for lines := bufio.NewReader(text); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if bytes.Contains(line, []byte(`"stats":`)) { // for others to read
			continue
		}
		var l struct {
			Header *struct{ Trouble float64 }
			Scrape string
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, err
		}
		if l.Header != nil {
			r.trouble = time.Duration(l.Header.Trouble) * time.Second
		}
		if l.Scrape == "" {
			continue
		}
		if seen++; (seen-1)%every != 0 {
			continue
		}
		if err := add(found, scrapes, []byte(l.Scrape)); err != nil {
			return nil, err
		}
		scrapes++
	}
	r.end = time.Duration(scrapes-1) * scraped
	r.series = slices.SortedFunc(maps.Values(found), func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	if r.end < 2*time.Minute || len(r.series) == 0 {
		return nil, errors.New("the recording has too few scrapes")
	}
	return r, nil
}

// add adds a scrape, with the labels that Prometheus gives to a target.
func add(found map[string]*series, scrape int, text []byte) error {
	p, err := textparse.New(text, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := p.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var own labels.Labels
		p.Labels(&own)
		_, _, value := p.Series()
		b := labels.NewBuilder(own)
		for name, value := range target {
			b.Set(name, value)
		}
		all := b.Labels()
		s := found[all.String()]
		if s == nil {
			s = &series{labels: all, first: scrape}
			found[all.String()] = s
		}
		s.values = append(s.values, value)
	}
}

// target has the labels that a Prometheus in Kubernetes adds.
var target = map[string]string{"job": "patientapi", "instance": "10.0.0.1:9090", "namespace": "default", "pod": "patientapi-1"}

// counts reports whether the values of the series only grow.
func (s *series) counts() bool {
	name := s.labels.Get(model.MetricNameLabel)
	return slices.ContainsFunc([]string{"_total", "_sum", "_count"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// prolonged returns the values with those before and after the recording. A counter goes on with its
// rate, and a gauge repeats what it was.
func (s *series) prolonged(calm int) (first int, values []float64) {
	first, values = s.first, s.values
	if few := calm - first; few > 0 { // it was there in the calm time
		before := continued(reversed(values[:few+1]), few, int(earlier/scraped)+first, s.counts())
		first, values = first-len(before), append(reversed(before), values...)
	}
	if least := slices.Min(values); least < 0 { // a counter that would have begun below zero
		values = slices.Clone(values)
		for i := range values {
			values[i] -= least
		}
	}
	return first, append(slices.Clip(values), continued(values, int(time.Minute/scraped), int(later/scraped), s.counts())...)
}

func reversed(values []float64) []float64 {
	values = slices.Clone(values)
	slices.Reverse(values)
	return values
}

// continued returns n values that follow: they go on as the last few do.
func continued(values []float64, few, n int, counts bool) []float64 {
	few = min(few, len(values)-1)
	last := values[len(values)-1]
	next := make([]float64, n)
	for i := range next {
		switch {
		case few == 0:
			next[i] = last
		case counts:
			next[i] = last + (last-values[len(values)-1-few])*float64(i+1)/float64(few)
		default:
			next[i] = values[len(values)-few+i%few]
		}
	}
	return next
}

// database returns the scene as a database that Prometheus queries.
func (r *recording) database() storage.Queryable {
	all := make([]storage.Series, len(r.series))
	for i, s := range r.series {
		var samples []chunks.Sample
		first, values := s.prolonged(int(r.trouble / scraped))
		for k, v := range values {
			samples = append(samples, sample{at: epoch.Add(time.Duration(first+k) * scraped).UnixMilli(), value: v})
		}
		all[i] = storage.NewListSeries(s.labels, samples)
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			var found set
			for i, s := range r.series {
				if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
					found.rest = append(found.rest, all[i])
				}
			}
			return &found
		},
	}}
}

// set is a storage.SeriesSet.
type set struct {
	now  storage.Series
	rest []storage.Series
}

func (s *set) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.now, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *set) At() storage.Series                { return s.now }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// sample is a chunks.Sample that is no histogram.
type sample struct {
	chunks.Sample
	at    int64
	value float64
}

func (s sample) T() int64                 { return s.at }
func (s sample) ST() int64                { return 0 }
func (s sample) F() float64               { return s.value }
func (s sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample      { return s }
