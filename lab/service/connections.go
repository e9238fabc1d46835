package service

import (
	"context"
	"errors"
)

// ErrConnections is what a database server says that has no connection left.
var ErrConnections = errors.New("service: the database refused the connection: too many clients already")

// Connections are those of a database server that allows a number of them, such as
// PostgreSQL's max_connections.
type Connections struct {
	open  chan struct{}
	waits bool
}

// NewConnections returns a server that allows n connections. One more is refused, or, if
// the clients share a driver's pool of as many, waits for its turn.
func NewConnections(n int, waits bool) *Connections {
	return &Connections{make(chan struct{}, n), waits}
}

// Query opens a connection, has f use it and closes it. It returns f's error, or
// ErrConnections, or that of ctx, if this ends before there is a connection.
func (c *Connections) Query(ctx context.Context, f func() error) error {
	select {
	case c.open <- struct{}{}:
	default:
		if !c.waits {
			return ErrConnections
		}
		select {
		case c.open <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-c.open }()
	return f()
}
