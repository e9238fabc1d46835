//go:build !race

package admissionhttp_test

const raceEnabled = false
