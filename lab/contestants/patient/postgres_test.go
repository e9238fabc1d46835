package main

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	databasesplan "github.com/spillway-go/spillway/lab/databases"
	"github.com/spillway-go/spillway/lab/experiment"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
)

// server is that of SPILLWAY_POSTGRES, or this machine's. Without one the test is skipped,
// unless SPILLWAY_REQUIRE says that there has to be one.
func server(t *testing.T) postgres.Server {
	t.Helper()
	url := cmp.Or(os.Getenv(postgres.Env), "postgres://postgres@127.0.0.1:5432/postgres")
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		err = conn.Close(t.Context())
	}
	switch {
	case err == nil:
		return postgres.Server(url)
	case slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "postgres"):
		t.Fatalf("no PostgreSQL (%v): run scripts/ensure-postgres.sh FOLDER and set %s to what is in FOLDER/address", err, postgres.Env)
	}
	t.Skipf("SKIPPED, nothing was tried on a real PostgreSQL (%v)", err)
	return ""
}

// databasesOn counts the databases and roles that experiments have made.
func databasesOn(t *testing.T, s postgres.Server, name string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), string(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	err = conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM pg_database WHERE datname = $1) + (SELECT count(*) FROM pg_roles WHERE rolname = $1)", name).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestADatabaseOfItsOwnIsThereUntilItIsClosed(t *testing.T) {
	s := server(t)
	d, err := s.Open(t.Context(), postgres.Population{Patients: 10, Events: 100})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), d.URL)
	if err != nil {
		t.Fatal(err)
	}
	var patients, events, limit int
	err = conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM patients), (SELECT count(*) FROM events), rolconnlimit FROM pg_roles WHERE rolname = current_user").Scan(&patients, &events, &limit)
	if err != nil || patients != 10 || events != 100 || limit != postgres.Connections {
		t.Errorf("%d patients, %d events, %d connections, %v", patients, events, limit, err)
	}
	unlock, err := d.Lock(t.Context(), "directory")
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		_, err := conn.Exec(t.Context(), "SET lock_timeout = '50ms'; SELECT count(*) FROM directory")
		return err
	}
	if err := read(); err == nil {
		t.Error("a locked table could be read")
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if err := read(); err != nil {
		t.Errorf("the table is still locked: %v", err)
	}
	if err := d.Close(); err != nil || databasesOn(t, s, d.Name) != 0 { // with a connection open
		t.Errorf("it was not dropped: %v", err)
	}
}

// session runs an experiment once, undisturbed.
func session(t *testing.T, e *experiment.Experiment, config any) (results.Results, []results.Run) {
	t.Helper()
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0),
		Watch: func() func() float64 { return func() float64 { return 0 } }}
	res, runs, err := s.Run(t.Context(), e, config)
	if err != nil || res.Partial != "" {
		t.Fatalf("%v, partial %q", err, res.Partial)
	}
	return res, runs
}

func TestTheScenariosOnARealDatabase(t *testing.T) {
	c := experiment.Sized[plan.Config]("quick")
	c.Postgres, c.Scenario = server(t), []string{"crowd", "stall", "neighbours"}
	c.Calm, c.Users, c.Stalled, c.Beside, c.MinLatency, c.MaxLatency = 200*time.Millisecond, 400, time.Second, time.Second, time.Millisecond, 3*time.Millisecond
	_, runs := session(t, plan.Experiment, &c)
	if len(runs) != 12 {
		t.Errorf("%d runs", len(runs))
	}
	for _, r := range runs {
		figures := []string{"refused_connections", "without_connection"}
		switch r.Setup {
		case plan.RealNeighbour:
			figures = append(figures, "neighbour_good")
		case plan.RealStall:
			figures = append(figures, "most_goroutines", "growth", "own_good", "critical_share")
		default:
			figures = append(figures, "fair_good", "own_good", "critical_share")
		}
		for _, f := range figures {
			if _, ok := r.Extra[f]; !ok {
				t.Errorf("%s, %s: no figure %s: %v", r.Setup, r.Pattern, f, r.Extra)
			}
		}
		if bounded := r.Pattern == plan.Pooled || r.Pattern == plan.Adaptive || r.Pattern == plan.Told; bounded && r.Extra["refused_connections"] != 0 {
			t.Errorf("%s, %s: %v connections were refused", r.Setup, r.Pattern, r.Extra["refused_connections"])
		}
	}
}

func TestALimiterWithoutANumberInFrontOfDatabases(t *testing.T) {
	c := experiment.Sized[databasesplan.Config]("quick")
	c.Postgres, c.Pool, c.Clients, c.Rows = server(t), []int{2}, 8, 100
	c.WarmUp, c.Settle, c.Time = 200*time.Millisecond, 100*time.Millisecond, 200*time.Millisecond
	c.Part = []string{"pools"}
	res, runs := session(t, databasesplan.Experiment, &c)
	if len(runs) != 6 {
		t.Errorf("%d runs", len(runs))
	}
	for _, r := range runs {
		for _, f := range []string{"before", "after", "p99_before", "p99_after", "limit_before", "limit_after"} {
			if !(r.Extra[f] > 0) {
				t.Errorf("%s, %s: %s is %v", r.Setup, r.Pattern, f, r.Extra[f])
			}
		}
	}
	for _, a := range res.Claims[0].Answers {
		if a.Missing {
			t.Errorf("%s: %s", a.Setup, a.Why)
		}
	}
}
