//go:build race

package patterns

const raceEnabled = true
