//go:build !race

package reuse

const samples = 0
