//go:build race

package reuse

// samples is how many objects a pool makes for itself: a build that looks for
// misuse compares what is put with two new ones.
const samples = 2
