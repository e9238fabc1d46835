package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/limiter"
)

// line is one line of a recording, as JSON. The first has the header, the others a time and what was seen then.
type line struct {
	Header *header `json:"header,omitempty"`
	At     float64 `json:"at"` // seconds since the recording began
	Stats  *seen   `json:"stats,omitempty"`
	Log    string  `json:"log,omitempty"`    // a line of the service's log
	Scrape string  `json:"scrape,omitempty"` // what Prometheus scrapes
}

type header struct {
	Scene      string    `json:"scene"`
	Trouble    float64   `json:"trouble"` // when the trouble begins
	Began      time.Time `json:"began"`
	Commit     string    `json:"commit"`
	Machine    string    `json:"machine"`
	Go         string    `json:"go"`
	Processors int       `json:"processors"`
}

// recorder records a limiter.
type recorder struct {
	began    time.Time
	registry *prometheus.Registry
	header   header

	mu                  sync.Mutex
	stats, logs, scrape []line
}

func newRecorder(s *scene, commit string) *recorder {
	now := time.Now()
	return &recorder{began: now, header: header{s.name, calm.Seconds(), now.UTC(), commit, processor(), runtime.Version(), runtime.NumCPU()}}
}

// Write takes a line of the log.
func (r *recorder) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, line{At: r.at(), Log: strings.TrimSpace(string(text))})
	return len(text), nil
}

func (r *recorder) at() float64 { return float64(time.Since(r.began).Milliseconds()) / 1e3 }

// run looks at the limiter every second, and scrapes it every five, until ctx ends.
func (r *recorder) run(ctx context.Context, lim *limiter.Limiter) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		r.stats = append(r.stats, line{At: r.at(), Stats: statsOf(lim)})
		if n%5 == 0 {
			text, err := r.expose()
			if err != nil {
				return err
			}
			r.scrape = append(r.scrape, line{At: r.at(), Scrape: text})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// seen is what the debug page sees of a limiter.
type seen struct {
	limiter.Stats
	Processors inside.Processors
	Pressure   inside.Pressure
}

func statsOf(lim *limiter.Limiter) *seen {
	in := inside.Of(lim)
	return &seen{small(lim.Stats()), in.Processors(), in.Pressure()}
}

// small makes Stats a fifth as long. Times are rounded down to three significant bits. Those of all kinds
// together are left out, since the times of each kind add up to them.
func small(s limiter.Stats) limiter.Stats {
	s.Service, s.QueueWait = nil, coarse(s.QueueWait)
	for name, k := range s.ByKind {
		k.Service = coarse(k.Service)
		s.ByKind[name] = k
	}
	return s
}

func coarse(h *histogram.Histogram) *histogram.Histogram {
	c := new(histogram.Histogram)
	for v, n := range h.Buckets() {
		shift := max(bits.Len64(uint64(v))-3, 0)
		c.RecordN(v>>shift<<shift, n)
	}
	return c
}

// expose returns what Prometheus scrapes, without the help and the buckets of histograms, which no rule reads.
func (r *recorder) expose() (string, error) {
	families, err := r.registry.Gather()
	if err != nil {
		return "", err
	}
	var all bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&all, f); err != nil {
			return "", err
		}
	}
	var text strings.Builder
	for l := range strings.Lines(all.String()) {
		if !strings.HasPrefix(l, "# HELP") && !strings.Contains(l, "_bucket{") {
			text.WriteString(l)
		}
	}
	return text.String(), nil
}

// write writes the recording. What is alike stands together, which compresses well.
func (r *recorder) write(file string) error {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []line{{Header: &r.header}}
	for _, some := range [][]line{r.stats, r.logs, r.scrape} {
		all = append(all, some...)
	}
	for _, l := range all {
		text, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("at %v s: %w", l.At, err)
		}
		if _, err := zip.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	if err := zip.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}

// processor returns the name of the processor.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return runtime.GOARCH
}
