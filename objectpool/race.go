//go:build race

package objectpool

const raceEnabled = true
