package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spillway-go/spillway/lab/experiment"
)

// ErrNone is the error of an experiment that nothing is left of without a server.
var ErrNone = errors.New("there is no PostgreSQL: name one with --postgres, or set " + Env + " (scripts/ensure-postgres.sh starts one)")

// Use has an experiment see, before it measures, that it can have databases on the server, and that
// the server takes so many connections. What the server computes disturbs no run.
func (s Server) Use(p *experiment.Plan, connections int) {
	var pid atomic.Int64
	p.Serving = func() int { return int(pid.Load()) }
	p.Prepare = func(ctx context.Context) error {
		database, err := s.Open(ctx, Population{})
		if err != nil {
			return err
		}
		pid.Store(int64(database.Server))
		if err := database.Close(); err != nil {
			return err
		}
		if database.Most < connections {
			return fmt.Errorf("the server takes %d connections and the scenarios need %d: raise its max_connections, or use the server that scripts/ensure-postgres.sh starts", database.Most, connections)
		}
		return nil
	}
}

// With has use ask a database, and drops it after that.
func (s Server) With(ctx context.Context, with Population, use func(*Database) error) (err error) {
	d, err := s.Open(ctx, with)
	if err != nil {
		return err
	}
	defer func() {
		if failed := d.Close(); err == nil && failed != nil {
			err = fmt.Errorf("the database was not dropped: %w", failed)
		}
	}()
	return use(d)
}
