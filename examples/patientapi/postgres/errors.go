package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/sqlstate"
)

// failed makes the error of a query: the context's, if that is why.
func failed(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, patientapi.ErrUnavailable):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s", patientapi.ErrUnavailable, sqlstate.Cause(err))
}
