//go:build !unix

package budget

import "errors"

var errUnix = errors.New("experiment budget stops processes, which this system cannot")

func stop(int) error   { return errUnix }
func resume(int) error { return errUnix }
