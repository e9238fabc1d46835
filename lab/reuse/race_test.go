//go:build race

package reuse

// samples is how many objects a pool makes for itself: a build that detects misuse
// compares each returned object with two new ones.
const samples = 2
