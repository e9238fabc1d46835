//go:build !unix

package admission

// idleByFiles is how many idle connections are made.
func idleByFiles() int { return 1000 }
