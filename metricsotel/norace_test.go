//go:build !race

package metricsotel

const raceEnabled = false
