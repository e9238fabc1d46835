//go:build !unix

package patterns

func enoughFiles(Config) error { return nil }
