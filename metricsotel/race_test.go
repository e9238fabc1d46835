//go:build race

package metricsotel

const raceEnabled = true
