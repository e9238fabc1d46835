// Package postgres gives experiments databases of their own on a real PostgreSQL server.
//
// The server is not theirs: a process of the program "patient" makes a database with a
// role that may have so many connections, as a service has on a server that it shares, and
// drops both at the end, also when the experiment is interrupted.
package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/contestant"
)

const (
	// Env holds the URL of the server's superuser.
	Env = "SPILLWAY_POSTGRES"

	// Connections is how many the role of a database may have.
	Connections = 100

	// ServerConnections is how many a server must take, of all databases: those of two
	// roles that are in use at one time, and of those who look on. This is the number that
	// scripts/ensure-postgres.sh asks for and sets.
	ServerConnections = 230

	program = "patient"
)

// The roles of the program. Each finds the superuser's URL in Env.
const (
	RoleDatabase = "postgres-database" // of Population, is ready with an Opened
	RoleLock     = "postgres-lock"     // of Lock, is ready when it has the lock
)

// Server is the URL of a PostgreSQL superuser, as a flag. It may hold a password: neither
// reports nor results show it.
type Server string

// String tells only whether there is one.
func (s Server) String() string {
	if s == "" {
		return "none"
	}
	return "a server"
}

// GoString is for what would look inside.
func (s Server) GoString() string { return s.String() }

// UnmarshalText is for the command line.
func (s *Server) UnmarshalText(text []byte) error {
	*s = Server(text)
	return nil
}

// MarshalJSON leaves it out: a session that is resumed takes it from Env.
func (Server) MarshalJSON() ([]byte, error) { return []byte(`""`), nil }

// UnmarshalJSON takes it from Env.
func (s *Server) UnmarshalJSON(data []byte) error {
	*s = Server(os.Getenv(Env))
	return json.Unmarshal(data, new(string))
}

// Check says what is wrong with the flag, without repeating it.
func (s Server) Check() error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(string(s))
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("postgres is not a URL of a superuser, such as postgres://postgres@127.0.0.1:5432/postgres")
	}
	shown := func(arg string) bool { return strings.Contains(arg, string(s)) }
	if _, secret := u.User.Password(); secret && slices.ContainsFunc(os.Args, shown) {
		return errors.New("the password of --postgres can be seen by everybody on this machine: set " + Env + " in place of the flag")
	}
	return nil
}

// Population is what Open puts into a database; nothing, and no table, if it is empty.
type Population struct {
	Patients int // in the table patients: id, body
	Events   int // in the table events: id, kind, value
}

// Opened is a database that is ready.
type Opened struct {
	URL    string // of the role; it holds the role's password
	Name   string
	Server int // process id of the server, if it is on this machine; 0: unknown
	Most   int // connections that the server takes, of all its databases
}

// Lock is what a session beside the service locks, so that nobody can read it.
type Lock struct{ Database, Table string }

// Database is one that the experiment has for itself.
type Database struct {
	Opened

	server  Server
	process *contestant.Process
}

// Open makes a database and its role on the server. Close it, also when ctx has ended.
func (s Server) Open(ctx context.Context, with Population) (*Database, error) {
	d := &Database{server: s}
	var err error
	if d.process, err = d.start(ctx, RoleDatabase, with, &d.Opened); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), d.Close())
	}
	return d, nil
}

// start starts a role that outlives ctx, because it has to clear up after itself.
func (d *Database) start(ctx context.Context, role string, input, ready any) (*contestant.Process, error) {
	spec := contestant.Spec{Program: program, Role: role, Input: input, Env: []string{Env + "=" + string(d.server)}}
	p, err := contestant.Start(context.WithoutCancel(ctx), spec, ready)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	return p, nil
}

// Lock takes a table from everybody else until unlock is called.
func (d *Database) Lock(ctx context.Context, table string) (unlock func() error, err error) {
	p, err := d.start(ctx, RoleLock, Lock{d.Name, table}, new(bool))
	if err != nil {
		return nil, err
	}
	return func() error { return stop(p) }, nil
}

// Close drops the database and its role, whoever still uses them.
func (d *Database) Close() error { return stop(d.process) }

func stop(p *contestant.Process) error {
	_, err := p.Stop(context.Background(), nil)
	return err
}
