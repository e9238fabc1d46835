package postgres

import (
	"context"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/migrate"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// open opens the records for a process that a busy machine may stop for seconds, also
// between two queries of a transaction.
func open(t testing.TB, url string) *Storage {
	t.Helper()
	return openAsItIs(t, pausing(url))
}

// pausing is the url with a setting that lets a process pause.
func pausing(url string) string {
	mark := "?"
	if strings.Contains(url, "?") {
		mark = "&"
	}
	return url + mark + pauseSetting + "=600000"
}

func openAsItIs(t testing.TB, url string) *Storage {
	t.Helper()
	s, err := Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStorage(t *testing.T) {
	t.Parallel()
	audittest.Run(t, func(t *testing.T) audittest.Database {
		url := postgrestest.New(t, 0).URL
		attacker := open(t, url)
		return audittest.Database{
			Open: func(t *testing.T) audit.Storage { return open(t, url) },
			Exec: func(t *testing.T, query string) {
				if _, err := attacker.pool.Exec(t.Context(), query); err != nil {
					t.Fatal(query, err)
				}
			},
			Blob: func(hexadecimal string) string { return "'\\x" + hexadecimal + "'" },
		}
	})
}

// Records of before keep their numbers and hashes.
func TestTheRecordsOfBeforeAreTakenOver(t *testing.T) {
	url := postgrestest.New(t, 0).URL
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	provider, err := migrate.New(goose.DialectPostgres, db, migrations, goose.WithTableName(schemaTable))
	require.NoError(t, err)
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	records, head := audittest.Before(t)
	for _, r := range records {
		e := r.Event
		if _, err := pool.Exec(t.Context(), "INSERT INTO audit_records VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)", r.Sequence, e.Time, e.RequestID, e.Subject,
			e.Role, e.Action, e.Resource, strings.Join(e.Patients, ","), e.More, string(e.Outcome), e.Status, e.Route, e.Unread, e.Count, r.Hash[:]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), "UPDATE audit_head SET sequence = $1, hash = $2, seal = $3", head.Sequence, head.Hash[:], head.Seal[:]); err != nil {
		t.Fatal(err)
	}
	s := open(t, url)
	if got := audittest.Read(t, s); !reflect.DeepEqual(got, records) {
		t.Errorf("%+v", got)
	}
	audittest.Record(t, s, nil, audittest.Everything)
	if r := audittest.Whole(t, s, nil); r.Records != int64(len(records))+1 {
		t.Errorf("%+v", r)
	}
}

func TestManyProcessesMakeTheTablesAtOnce(t *testing.T) {
	t.Parallel()
	url := postgrestest.New(t, 0).URL
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := Open(context.WithoutCancel(t.Context()), pausing(url), "")
			if err != nil {
				t.Error(err)
				return
			}
			audittest.Record(t, s, nil, audittest.Everything)
			_ = s.Close()
		})
	}
	all.Wait()
	if r := audittest.Whole(t, open(t, url), nil); r.Records != 8 {
		t.Errorf("%d records", r.Records)
	}
}

// A connection that is cut costs the records of one commit, which say so, and no more.
func TestACutConnectionHeals(t *testing.T) {
	t.Parallel()
	url := postgrestest.New(t, 0).URL
	s, neighbour := open(t, url), open(t, url)
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: s, Timeout: time.Minute, Patience: time.Minute})
	require.NoError(t, err)
	require.NoError(t, w.Record(t.Context(), audittest.Everything))
	if _, err := neighbour.pool.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	refused := int64(0)
	for w.Record(t.Context(), audittest.Everything) != nil {
		if refused++; refused > Connections {
			t.Fatal("it does not heal")
		}
	}
	require.NoError(t, w.Close())
	if r := audittest.Whole(t, s, nil); r.Lost != refused {
		t.Errorf("%d events were refused; %+v", refused, r)
	}
}

// A process that is frozen in the middle of a commit does not keep the others from theirs.
func TestAFrozenProcessHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	url := postgrestest.New(t, 0).URL
	frozen, neighbour := openAsItIs(t, url), open(t, url)
	thawed, ended := make(chan struct{}), make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		ended <- frozen.Append(context.WithoutCancel(t.Context()), func(tip audit.Tip) (audit.Block, audit.Head, error) {
			close(begun)
			<-thawed
			return audit.Block{First: tip.Head.Sequence + 1, Records: []byte("[]")}, tip.Head, nil
		})
	}()
	<-begun
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: neighbour, Timeout: time.Minute, Patience: time.Minute})
	require.NoError(t, err)
	err = w.Record(t.Context(), audittest.Everything)
	close(thawed)
	assert.NoError(t, err)
	if err := <-ended; err == nil {
		t.Error("what it had begun was written when it went on")
	}
	assert.NoError(t, w.Close())
	if r := audittest.Whole(t, neighbour, nil); r.Records != 1 {
		t.Errorf("%+v", r)
	}
}

// Reading holds no lock, so it may take its time. A verification on a busy machine once
// paused for a second and failed by the bound that is meant for writers.
func TestAReaderMayPause(t *testing.T) {
	t.Parallel()
	url := postgrestest.New(t, 0).URL
	s, neighbour := openAsItIs(t, url), open(t, url)
	audittest.Record(t, s, nil, audittest.Everything)
	blocks := 0
	err := s.Read(t.Context(), func(_ audit.Head, all iter.Seq2[audit.Block, error]) error {
		for _, err := range all {
			if err != nil {
				return err
			}
			blocks++
		}
		_, err := neighbour.pool.Exec(t.Context(), "SELECT pg_sleep($1)", (longestPause + longestPause/2).Seconds())
		return err
	})
	if err != nil || blocks != 1 {
		t.Errorf("%d blocks, %v", blocks, err)
	}
}

// Whatever the default of the role is, a commit waits for the disk.
func TestACommitWaitsForTheDisk(t *testing.T) {
	url := postgrestest.New(t, 0).URL
	first := open(t, url)
	if _, err := first.pool.Exec(t.Context(), "ALTER ROLE current_user SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	var setting string
	if err := open(t, url).pool.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&setting); err != nil || setting != "on" {
		t.Errorf("synchronous_commit is %s, %v", setting, err)
	}
}
