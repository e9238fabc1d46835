package audittest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// Database is where a storage under test keeps its records.
type Database struct {
	Open func(t *testing.T) audit.Storage      // another process that uses it
	Exec func(t *testing.T, query string)      // what an attacker does
	Blob func(hexadecimal string) (sql string) // a literal
}

// Run checks a kind of storage. Fresh makes an empty database.
func Run(t *testing.T, fresh func(t *testing.T) Database) {
	t.Run("what is recorded is read", func(t *testing.T) { roundTrip(t, fresh(t)) })
	t.Run("all or nothing", func(t *testing.T) { allOrNothing(t, fresh(t)) })
	t.Run("processes share a chain", func(t *testing.T) { sharing(t, fresh(t)) })
	t.Run("tampering is found", func(t *testing.T) { tampering(t, fresh(t)) })
	t.Run("a damaged end takes no record", func(t *testing.T) { damagedEnd(t, fresh(t)) })
	t.Run("a process that was killed is found", func(t *testing.T) { killed(t, fresh(t)) })
	t.Run("records can be searched", func(t *testing.T) { searched(t, fresh(t)) })
}

// patient is a writer's bounds in tests: the disk may be busy for longer than the default.
const patient = time.Minute

// Record puts events on record, each with a commit of its own.
func Record(t testing.TB, s audit.Storage, key audit.Key, events ...audit.Event) {
	t.Helper()
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: s, Key: key, Timeout: patient, Patience: patient})
	require.NoError(t, err)
	for _, e := range events {
		require.NoError(t, w.Record(t.Context(), e))
	}
	require.NoError(t, w.Close())
}

// Read returns what is on record.
func Read(t testing.TB, s audit.Storage) (records []audit.Record) {
	t.Helper()
	err := s.Read(t.Context(), func(_ audit.Head, all iter.Seq2[audit.Block, error]) error {
		for b, err := range all {
			if err != nil {
				return err
			}
			some, err := b.Open()
			if err != nil {
				return err
			}
			records = append(records, some...)
		}
		return nil
	})
	require.NoError(t, err)
	return records
}

// Whole fails the test if the chain is not whole.
func Whole(t testing.TB, s audit.Storage, key audit.Key) audit.Result {
	t.Helper()
	result, err := audit.Verify(t.Context(), s, key, audit.Head{}, nil)
	if err != nil || result.Found != 0 {
		t.Fatalf("%v, %+v", err, result)
	}
	return result
}

// Everything is an event with every field set.
var Everything = audit.Event{
	Time: time.Date(2025, 11, 3, 8, 15, 30, 123456789, time.FixedZone("CET", 3600)), RequestID: "r-1", Subject: "dr.weber", Role: "clinician",
	Action: "read", Resource: "Patient", Patients: []string{"P000042", "P000043"}, More: 7, Outcome: audit.Granted, Status: 200,
	Route: "GET /api/v1/patients/{id}", Unread: true, Count: 3, Source: "192.0.2.7",
}

func roundTrip(t *testing.T, db Database) {
	odd := Everything
	odd.Subject, odd.RequestID, odd.Role = "Zoë\x00\xff'\"; DROP TABLE audit_records; --", strings.Repeat("ü", 1000), "a,b\nc"
	odd.Patients, odd.Status, odd.Count = []string{"P1,P2", "P000001", "", "x' OR 1=1"}, -1, -1<<63
	many := Everything
	many.Patients = make([]string, 1000)
	for i := range many.Patients {
		many.Patients[i] = fmt.Sprintf("P%06d", i)
	}
	s := db.Open(t)
	Record(t, s, nil, audit.Event{}, Everything, odd, many)
	records := Read(t, db.Open(t))
	if len(records) != 4 {
		t.Fatalf("%d records", len(records))
	}
	want := Everything
	want.Time = time.Date(2025, 11, 3, 7, 15, 30, 123456000, time.UTC)
	if got := records[1].Event; !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if got := records[2].Event; got.Subject != "Zoë??'\"; DROP TABLE audit_records; --" || len(got.RequestID) != 256 || got.Role != odd.Role || got.Count != odd.Count ||
		!slices.Equal(got.Patients, []string{"(malformed)", "P000001", "(malformed)", "(malformed)"}) {
		t.Errorf("%+v", got)
	}
	if got := records[3].Event; len(got.Patients) != audit.MaxPatients || got.More != 7+900 {
		t.Errorf("%d patients and %d more", len(got.Patients), got.More)
	}
	if r := Whole(t, s, nil); r.Records != 4 || r.Head.Sequence != 4 || r.Head.Hash != records[3].Hash {
		t.Errorf("%+v", r)
	}
}

func allOrNothing(t *testing.T, db Database) {
	s, mine := db.Open(t), errors.New("mine")
	failing := func(t audit.Tip) (audit.Block, audit.Head, error) { return audit.Block{}, t.Head, mine }
	err := s.Append(t.Context(), failing)
	if err != mine {
		t.Errorf("extend's error is %v", err)
	}
	twice := audit.BlockOf([]audit.Record{{Sequence: 1}})
	Record(t, s, nil, Everything)
	before := Whole(t, s, nil)
	err = s.Append(t.Context(), func(audit.Tip) (audit.Block, audit.Head, error) { return twice, audit.Head{Sequence: 2}, nil })
	if err == nil {
		t.Error("two blocks of one number")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ended, failing); !errors.Is(err, context.Canceled) {
		t.Errorf("of an ended context: %v", err)
	}
	if after := Whole(t, s, nil); after.Records != 1 || after.Head != before.Head {
		t.Errorf("%+v", after)
	}
}

func sharing(t *testing.T, db Database) {
	const processes, callers, each = 3, 8, 25
	var all sync.WaitGroup
	for range processes {
		w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: db.Open(t), Timeout: patient, Patience: patient})
		require.NoError(t, err)
		all.Go(func() {
			var calls sync.WaitGroup
			for range callers {
				calls.Go(func() {
					for range each {
						assert.NoError(t, w.Record(t.Context(), Everything))
					}
				})
			}
			calls.Wait()
			assert.NoError(t, w.Close())
		})
	}
	all.Wait()
	if r := Whole(t, db.Open(t), nil); r.Records != processes*callers*each {
		t.Errorf("%d records of %d", r.Records, processes*callers*each)
	}
}

// killed lets processes end in every way. Each other one finds those that were killed, once,
// and none that lives or has left.
func killed(t *testing.T, db Database) {
	writer := func(s audit.Storage) *audit.Writer {
		w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: s, Retry: time.Hour, Timeout: patient, Patience: patient})
		require.NoError(t, err)
		return w
	}
	living, dying := db.Open(t), db.Open(t)
	lives := writer(living)
	Record(t, db.Open(t), nil, Everything) // leaves
	w := writer(dying)
	db.Exec(t, "ALTER TABLE audit_blocks RENAME TO away")
	if w.Record(t.Context(), Everything) == nil {
		t.Error("recorded nowhere")
	}
	if err := dying.Close(); err != nil { // as the system does when a process is killed; its count is gone
		t.Fatal(err)
	}
	db.Exec(t, "ALTER TABLE away RENAME TO audit_blocks")
	for range 2 {
		Record(t, db.Open(t), nil, Everything)
	}
	assert.NoError(t, lives.Record(t.Context(), Everything))
	assert.NoError(t, lives.Close())
	var outcomes []audit.Outcome
	for _, r := range Read(t, living) {
		outcomes = append(outcomes, r.Event.Outcome)
	}
	if want := []audit.Outcome{audit.Granted, audit.Unclean, audit.Granted, audit.Granted, audit.Granted}; !slices.Equal(outcomes, want) {
		t.Errorf("%v, want %v", outcomes, want)
	}
	if r := Whole(t, living, nil); r.Unclean != 1 || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
	_ = w.Close() // its storage is closed
}

// searched asks the database itself, in blocks of several records too.
func searched(t *testing.T, db Database) {
	s := db.Open(t)
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: s, Timeout: patient, Patience: patient})
	require.NoError(t, err)
	var callers sync.WaitGroup
	for n := range 50 {
		callers.Go(func() {
			e := Everything
			e.RequestID = fmt.Sprintf("r-\"%d", n)
			assert.NoError(t, w.Record(t.Context(), e))
		})
	}
	callers.Wait()
	assert.NoError(t, w.Close())
	if s := w.Stats(); s.Commits > 40 {
		t.Errorf("%d commits", s.Commits)
	}
	db.Exec(t, "CREATE TABLE found (sequence bigint PRIMARY KEY, patients text CHECK (patients LIKE '%P000043%'))")
	db.Exec(t, "INSERT INTO found SELECT sequence, patients FROM audit_records WHERE subject = 'dr.weber' AND status = 200 AND source = '192.0.2.7'")
	db.Exec(t, "CREATE TABLE complete (n bigint CHECK (n = 50))")
	db.Exec(t, "INSERT INTO complete SELECT count(*) FROM found WHERE sequence BETWEEN 1 AND 50")
}

// Before returns records as they were when each had a row of its own, without a Source, and
// their head.
func Before(t *testing.T) ([]audit.Record, audit.Head) {
	t.Helper()
	plain, odd, many := Everything, Everything, Everything
	plain.Source, odd.Source, many.Source = "", "", ""
	odd.Subject, odd.Role, odd.Patients = "\x01\b\t\n\f\r\x1f\x7f\"\\/<>&'é\u2028😀", `\u0041"}]`, nil
	many.Patients, many.Unread, many.Count = []string{"P000001", "(malformed)", "a.b-C"}, false, -1<<63
	var m Memory
	Record(t, &m, nil, audit.Event{}, plain, odd, many)
	return m.Records(), Whole(t, &m, nil).Head
}

// Typical is an event as most are.
var Typical = audit.Event{
	Time: time.Date(2025, 11, 3, 8, 15, 0, 0, time.UTC), RequestID: "7YQ3NZ4V5CKXWJ2MTB6HDRLFPA", Subject: "dr.weber", Role: "clinician",
	Action: "read", Resource: "Patient", Patients: []string{"P000042"}, Outcome: audit.Granted, Status: 200, Route: "GET /api/v1/patients/{id}",
}
