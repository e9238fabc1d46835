//go:build !race

package routegin_test

const raceEnabled = false
