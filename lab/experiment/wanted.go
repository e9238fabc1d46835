package experiment

import "slices"

// Wanted reports whether the user gave the name, or none: all are wanted then.
func Wanted(given []string, name string) bool {
	return len(given) == 0 || slices.Contains(given, name)
}
