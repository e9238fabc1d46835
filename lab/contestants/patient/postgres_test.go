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

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/overload"
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
	read := func(wait string) error {
		_, err := conn.Exec(t.Context(), "SET lock_timeout = '"+wait+"'; SELECT count(*) FROM directory")
		return err
	}
	if err := read("50ms"); err == nil {
		t.Error("a locked table could be read")
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if err := read("0"); err != nil { // as long as it takes
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

func TestTheCrowdOnARealDatabase(t *testing.T) {
	soak.WithoutRace(t)
	for _, r := range onRealDatabase(t, 4, "crowd") {
		if bounded := r.Pattern == plan.Pooled || r.Pattern == plan.Adaptive || r.Pattern == plan.Told; r.Failed != "" || bounded && r.Extra["refused_connections"] != 0 {
			t.Errorf("%s, %s: %s, %v connections were refused", r.Setup, r.Pattern, r.Failed, r.Extra["refused_connections"])
		}
	}
}

// onRealDatabase plays scenarios, in which there are so many runs.
func onRealDatabase(t *testing.T, want int, scenarios ...string) []results.Run {
	t.Helper()
	c := experiment.Sized[plan.Config]("quick")
	c.Postgres, c.Scenario = server(t), scenarios
	c.Calm, c.Users, c.Stalled, c.Beside, c.MinLatency, c.MaxLatency = 200*time.Millisecond, 400, time.Second, time.Second, time.Millisecond, 3*time.Millisecond
	_, runs := session(t, plan.Experiment, &c)
	if len(runs) != want {
		t.Errorf("%d runs", len(runs))
	}
	return runs
}

func TestALimiterWithoutANumberInFrontOfDatabases(t *testing.T) {
	runs, _ := inFrontOfDatabases(t, .05)
	for _, r := range runs {
		if r.Failed != "" || r.Killed != "" {
			t.Errorf("%s, %s: %s%s", r.Setup, r.Pattern, r.Failed, r.Killed)
		}
	}
}

// inFrontOfDatabases makes short runs with a pool of two connections, and says which
// answers to the claim are missing.
func inFrontOfDatabases(t *testing.T, pace float64) (runs []results.Run, missing []string) {
	t.Helper()
	c := experiment.Sized[overload.Config]("quick")
	c.Postgres, c.Pace = server(t), pace
	c.Scene, c.Contestant = []string{"sqlite-pools", "postgres-pools"}, []string{"pool of 2", overload.Spillway}
	res, runs := session(t, overload.Databases, &c)
	if len(runs) != 6 {
		t.Errorf("%d runs", len(runs))
	}
	for _, a := range res.Claims[0].Answers {
		if a.Missing {
			missing = append(missing, a.Setup+": "+a.Why)
		}
	}
	return runs, missing
}

func TestPoolsOfSeveralSizesLookPatientsUp(t *testing.T) {
	s := server(t)
	d, err := s.Open(t.Context(), postgres.Population{Patients: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Most < postgres.ServerConnections {
		t.Skipf("SKIPPED: the server takes %d connections, and the pools open up to %d", d.Most, readers)
	}
	c := plan.Config{Patients: 100, QueueWait: time.Minute}
	in := plan.Sizing{URL: d.URL, Jobs: []plan.Job{{Config: c, Pattern: plan.WorkerPool}, {Config: c, Pattern: plan.WorkerPool}}}
	for i := range in.Jobs {
		in.Jobs[i].Requests, in.Jobs[i].Clients, in.Jobs[i].Workers = 200, 10, 1+i
	}
	runs, err := sizes(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range runs {
		if run.Of("ok").Count != 200 || run.Params["workers"] != float64(1+i) {
			t.Errorf("%+v", run)
		}
	}
}
