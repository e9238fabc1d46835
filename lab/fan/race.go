//go:build race

package fan

const raceEnabled = true
