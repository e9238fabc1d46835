//go:build race

package admissionhttp_test

const raceEnabled = true
