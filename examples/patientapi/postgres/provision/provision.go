// Package provision makes databases for tests and experiments, each with a role of
// its own that may have only so many connections, as a service has on a server that
// it shares.
package provision

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Connections is how many connections a role gets unless said otherwise.
const Connections = 100

// Database is a fresh database and the role that owns it. Both stay until Drop.
type Database struct {
	// URL opens the database as that role. It holds the role's password: it belongs in
	// an environment or a file, not in a log or on a command line.
	URL string

	admin *url.URL
	name  string // of the database and of the role
}

// New makes a database, and a role with CONNECTION LIMIT connections; zero means
// Connections. Admin is the postgres:// URL of a superuser; no error repeats it.
func New(ctx context.Context, admin string, connections int) (*Database, error) {
	if connections == 0 {
		connections = Connections
	}
	u, err := url.Parse(admin)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("provision: the superuser's address is not a URL, as in postgres://user@host:port/postgres")
	}
	name, password := "spillway_"+strings.ToLower(rand.Text()), rand.Text()
	d := &Database{admin: u, name: name}
	// Neither statement takes parameters; what is put in has letters and digits only.
	err = d.run(ctx,
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s' CONNECTION LIMIT %d", name, password, connections),
		fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0", name, name))
	if err != nil {
		return nil, errors.Join(err, d.Drop(context.WithoutCancel(ctx)))
	}
	own := *u
	own.User, own.Path = url.UserPassword(name, password), "/"+name
	d.URL = own.String()
	return d, nil
}

// Name is that of the database and of its role.
func (d *Database) Name() string { return d.name }

// Drop cuts all connections to the database and removes it and its role. Dropping
// twice is no error.
func (d *Database) Drop(ctx context.Context) error {
	return d.run(ctx, "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)", "DROP ROLE IF EXISTS "+d.name)
}

// Limit changes how many connections the role may have from now on; those that are
// open stay.
func (d *Database) Limit(ctx context.Context, connections int) error {
	return d.run(ctx, fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d", d.name, connections))
}

func (d *Database) run(ctx context.Context, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.admin.String())
	if err != nil {
		return fmt.Errorf("provision: the superuser cannot connect: %w", err)
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("provision: %w", err)
		}
	}
	return nil
}
