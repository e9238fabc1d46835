//go:build !linux && !darwin && !freebsd

package embedded

// freeBytes returns false: on this platform a full disk shows only when the store fails.
func freeBytes(string) (bytes int64, known bool) { return 0, false }
