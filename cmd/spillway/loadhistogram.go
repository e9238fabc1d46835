package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spillway-go/spillway/histogram"
)

// latencyBucket counts latencies, in milliseconds.
type latencyBucket struct {
	Above float64 `json:"above_ms"`
	UpTo  float64 `json:"up_to_ms"`
	Count uint64  `json:"count"`
}

// Steps of a decade. They are the same for every load, so that buckets of two loads can be compared.
var (
	fineSteps   = []float64{1, 1.5, 2, 3, 5, 7}
	coarseSteps = []float64{1, 2, 5}
)

// buckets are those from the smallest to the largest latency.
func buckets(h *histogram.Histogram, steps []float64) (all []latencyBucket) {
	below, low := uint64(0), 0.0
	for decade := 1.0; h.Count() > 0; decade *= 10 {
		for _, step := range steps {
			high := math.Round(decade * step)
			upTo := h.CountAtMost(int64(high))
			if upTo > 0 {
				all = append(all, latencyBucket{low / 1e6, high / 1e6, upTo - below})
			}
			if upTo == h.Count() {
				return all
			}
			below, low = upTo, high
		}
	}
	return nil
}

const (
	pictureRows  = 12
	pictureWidth = 40
)

// picture draws the latencies of a histogram, a row for each bucket.
func picture(w io.Writer, rows []latencyBucket) {
	most := uint64(0)
	for _, b := range rows {
		most = max(most, b.Count)
	}
	for _, b := range rows {
		bar := strings.Repeat("█", int(math.Round(pictureWidth*float64(b.Count)/float64(most))))
		if bar == "" && b.Count > 0 {
			bar = "▏"
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%8s - %-8s %8d  %s", bound(b.Above), bound(b.UpTo), b.Count, bar), " "))
	}
}

func bound(ms float64) string { return fmt.Sprintf("%.6g", ms) }

// coarse is a histogram in few rows.
func coarse(h *histogram.Histogram) []latencyBucket {
	if rows := buckets(h, fineSteps); len(rows) <= pictureRows {
		return rows
	}
	return buckets(h, coarseSteps)
}
