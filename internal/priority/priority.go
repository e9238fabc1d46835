// Package priority numbers the priorities, so that a table has a place for each: 0 is the most
// important.
package priority

import "github.com/spillway-go/spillway"

// Levels is the number of priorities.
const Levels = 4

// Level returns the number of a priority. A priority out of range counts as the nearest one.
func Level(p spillway.Priority) int {
	if lv := uint8(spillway.Critical - p); lv < Levels {
		return int(lv)
	}
	if p > spillway.Critical {
		return 0
	}
	return Levels - 1
}

// Of returns the priority with the number level.
func Of(level int) spillway.Priority { return spillway.Critical - spillway.Priority(level) }
