package ledger

import "slices"

// Keys are the cells of contestants under one load, in their order. One that is named again is a
// twin.
func Keys(setup, load string, contestants []string) (out []Key) {
	for i, name := range contestants {
		out = append(out, Key{Setup: setup, Load: load, Pattern: name, Twin: slices.Contains(contestants[:i], name)})
	}
	return out
}
