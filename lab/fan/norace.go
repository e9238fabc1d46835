//go:build !race

package fan

const raceEnabled = false
