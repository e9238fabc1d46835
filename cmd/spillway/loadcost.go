package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spillway-go/spillway/load/usage"
)

// generatorCost is what a load cost this process. What the system does not tell is 0, and
// left out.
type generatorCost struct {
	Micros  float64 `json:"cpu_us_per_request,omitzero"` // user and system
	PeakRSS uint64  `json:"peak_rss_bytes,omitzero"`     // since its start
}

func costOf(cpu time.Duration, requests uint64) (c generatorCost) {
	if requests > 0 {
		c.Micros = float64(cpu.Nanoseconds()) / 1e3 / float64(requests)
	}
	_, c.PeakRSS = usage.Resident(os.Getpid())
	return c
}

// String is empty if nothing is known.
func (c generatorCost) String() string {
	var parts []string
	if c.Micros > 0 {
		parts = append(parts, fmt.Sprintf("%.1f µs of processor time a request", c.Micros))
	}
	if c.PeakRSS > 0 {
		parts = append(parts, fmt.Sprintf("%.0f MiB at most", float64(c.PeakRSS)/(1<<20)))
	}
	return strings.Join(parts, ", ")
}
