package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
)

// beside returns a connection of the same role, outside the pool.
func beside(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// lock makes every question about patients wait, until the returned function is called.
func lock(t *testing.T, url string) (unlock func()) {
	t.Helper()
	conn := beside(t, url)
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE patients"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.Exec(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
	}
}

// active returns how many statements of the pool are under way.
func active(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE usename = current_user AND application_name = 'patientapi' AND state = 'active'`).Scan(&n)
	require.NoError(t, err)
	return n
}

func lookup(ctx context.Context, s *Store) error {
	var p patientapi.Patient
	return s.Patient(ctx, "P000042", &p)
}

// A caller that leaves takes no connection with it, and its statement does not go on.
func TestEndedContextGivesTheConnectionBack(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 2+2) // those of the pool, and two of the test
	s := open(t, Config{URL: d.URL, Connections: 2})
	side := beside(t, d.URL)
	unlock := lock(t, d.URL)
	for round := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 6)
		for range 6 { // two get a connection, four wait for one
			go func() { ended <- lookup(ctx, s) }()
		}
		await.True(t, "two lookups wait for the lock", func() bool { return active(t, side) == 2 })
		cancel()
		for range 6 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("round %d: %v", round, err)
			}
		}
		await.True(t, "the server has stopped both", func() bool { return active(t, side) == 0 })
	}
	unlock()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			assert.NoError(t, lookup(t.Context(), s))
		})
	}
	wg.Wait()
	if c := s.Connections(); c.Open > 2 || c.Peak > 2 {
		t.Errorf("%+v", c)
	}
}

// A process that is killed says no goodbye: the server finds out itself.
func TestStatementOfADeadProcessEnds(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 0)
	s := open(t, Config{URL: d.URL, Connections: 1})
	side := beside(t, d.URL)
	conn, err := s.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	ended := make(chan error)
	go func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), "SELECT pg_sleep(600)")
		ended <- err
	}()
	await.True(t, "the statement is under way", func() bool { return active(t, side) == 1 })
	conn.Conn().PgConn().Conn().Close()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	await.True(t, "the server has stopped it", func() bool { return active(t, side) == 0 })
}

// A neighbour that takes connections of the same role leaves fewer: the pool makes do
// with those that it has, says so where it has none, and grows again afterwards.
func TestNeighbourTakesTheConnectionsOfTheRole(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 4)
	s := open(t, Config{URL: d.URL, Connections: 4})
	var neighbours []*pgx.Conn
	take := func(n int) {
		for range n {
			neighbours = append(neighbours, beside(t, d.URL))
		}
	}
	all := func(want error) {
		t.Helper()
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				err := lookup(t.Context(), s)
				if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "too many connections for the role: raise its CONNECTION LIMIT") {
					t.Errorf("got %v, want %v", err, want)
				}
			})
		}
		wg.Wait()
	}
	take(4)
	all(patientapi.ErrUnavailable)
	neighbours[0].Close(t.Context())
	await.True(t, "a lookup succeeds", func() bool { return lookup(t.Context(), s) == nil })
	all(nil) // on one connection, instead of errors for three quarters
	for _, n := range neighbours {
		n.Close(t.Context())
	}
	await.True(t, "the pool has grown", func() bool { all(nil); return s.Connections().Open > 1 })
}

func TestMoreConnectionsThanAllowedAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 8)
	open(t, Config{URL: d.URL, Connections: 8}).Close()
	if s := open(t, Config{URL: d.URL}); s.Connections().Max != 4 {
		t.Errorf("by default %+v", s.Connections())
	}
	if _, err := Open(t.Context(), Config{URL: d.URL, Connections: 7, Reserved: 2}, set, nil); err == nil || !strings.Contains(err.Error(), "2 of the audit") {
		t.Errorf("with those of the audit: %v", err)
	}
	_, err := Open(t.Context(), Config{URL: d.URL, Connections: 9}, set, nil)
	if err == nil || !strings.Contains(err.Error(), "allow 8") {
		t.Error(err)
	}
	if err := (Config{URL: d.URL, Connections: -1}).Check(); err == nil {
		t.Error("a negative number of connections was accepted")
	}
}

func TestErrorsSayWhatToDoAndShowNoSecret(t *testing.T) {
	t.Parallel()
	good, err := url.Parse(postgrestest.New(t, 0).URL)
	require.NoError(t, err)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	taken.Close()
	change := func(change func(u *url.URL)) string {
		u := *good
		change(&u)
		return u.String()
	}
	wrongPassword := change(func(u *url.URL) { u.User = url.UserPassword(good.User.Username(), "opensesame") })
	refused := "28P01"
	if conn, err := pgx.Connect(t.Context(), wrongPassword); err == nil {
		conn.Close(t.Context())
		t.Log("the server asks for no password: a wrong one was not tried")
		wrongPassword, refused = "postgres://u:opensesame@127.0.0.1:notaport/x", "postgres://user"
	}
	for name, c := range map[string]struct{ url, want string }{
		"password":    {wrongPassword, refused},
		"database":    {change(func(u *url.URL) { u.Path = "/opensesame" }), "3D000"},
		"host":        {change(func(u *url.URL) { u.Host = "opensesame.invalid:5432" }), "name of its host"},
		"syntax":      {"postgres://u:opensesame@127.0.0.1:notaport/x", "postgres://user@host:5432/database"},
		"certificate": {change(func(u *url.URL) { u.RawQuery = "sslmode=verify-full&sslrootcert=/opensesame" }), "files it names"},
	} {
		_, err := Open(t.Context(), Config{URL: c.url}, set, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Error("x", "error", err)
		password, _ := good.User.Password()
		for _, secret := range []string{"sesame", password, good.User.Username(), good.Host} {
			if shown := fmt.Sprintf("%v %+v %#v %s", err, err, err, &log); strings.Contains(shown, secret) {
				t.Errorf("%s: %s", name, shown)
			}
		}
	}
}
