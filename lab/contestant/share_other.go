//go:build !unix

package contestant

import (
	"errors"
	"fmt"
	"runtime"
)

// Share is not there: the error matches errors.ErrUnsupported.
func Share[T any](string) (*T, func(), error) {
	return nil, nil, fmt.Errorf("this experiment needs memory that processes share: %w on %s", errors.ErrUnsupported, runtime.GOOS)
}
