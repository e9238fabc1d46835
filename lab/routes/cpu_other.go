//go:build !unix

package routes

import "time"

// cpu is not available on this system.
func cpu() time.Duration { return 0 }
