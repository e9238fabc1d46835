package audittest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// tampering does to a chain what can be done to it, one after the other, and undoes it.
func tampering(t *testing.T, db Database) {
	key := audit.Key("not to be kept with the records!")
	s := db.Open(t)
	Record(t, s, key, slices.Repeat([]audit.Event{Everything}, 9)...)
	tables := []string{"audit_blocks", "audit_head"}
	for _, table := range tables {
		db.Exec(t, "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)
	}
	db.Exec(t, "CREATE TABLE ahead AS SELECT 10 AS first, replace(records, '\"n\":9', '\"n\":10') AS records FROM audit_blocks WHERE first = 9")
	for change, at := range changes(db, Read(t, s)[3].Hash) {
		db.Exec(t, change)
		r, err := audit.Verify(t.Context(), s, key, audit.Head{}, nil)
		if err != nil || r.Found == 0 || r.Faults[0].Sequence != at {
			t.Errorf("%s: %v, %+v, want a fault at %d", change, err, r, at)
		}
		for _, table := range tables {
			db.Exec(t, "DELETE FROM "+table)
			db.Exec(t, "INSERT INTO "+table+" SELECT * FROM kept_"+table)
		}
	}
	Whole(t, s, key)
}

// damagedEnd does something to a chain while a writer runs.
func damagedEnd(t *testing.T, db Database) {
	s := db.Open(t)
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: s, Retry: time.Hour})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, w.Record(t.Context(), Everything))
	}
	db.Exec(t, "CREATE TABLE kept AS SELECT * FROM audit_blocks")
	for _, change := range []string{
		"UPDATE audit_blocks SET records = replace(records, 'dr.weber', 'nobody') WHERE first = 3",
		"DELETE FROM audit_blocks WHERE first = 3", "DELETE FROM audit_blocks",
	} {
		db.Exec(t, change)
		if err := w.Record(t.Context(), Everything); !errors.Is(err, audit.ErrTip) {
			t.Errorf("%s: %v", change, err)
		}
		db.Exec(t, "DELETE FROM audit_blocks")
		db.Exec(t, "INSERT INTO audit_blocks SELECT * FROM kept")
	}
	if err := w.Record(t.Context(), Everything); err != nil {
		t.Errorf("when it was put back: %v", err)
	}
	assert.NoError(t, w.Close())
	if r := Whole(t, s, nil); r.Lost != 3 {
		t.Errorf("%+v", r)
	}
}

// changes are what can be done, and the number of the first record that does not fit then.
func changes(db Database, fourth audit.Hash) map[string]int64 {
	const row4 = " WHERE first = 4"
	all := map[string]int64{
		"DELETE FROM audit_blocks" + row4:                   4,
		"DELETE FROM audit_blocks WHERE first = 1":          1,
		"DELETE FROM audit_blocks WHERE first = 9":          9,
		"DELETE FROM audit_blocks WHERE first IN (5, 6, 7)": 5,
		"DELETE FROM audit_blocks":                          1,
		"DELETE FROM audit_head":                            1,
		"UPDATE audit_blocks SET first = 12" + row4:         4,
		"UPDATE audit_blocks SET first = -1" + row4:         -1,
		"UPDATE audit_blocks SET records = ''" + row4:       4,
		"UPDATE audit_blocks SET records = '[]'" + row4:     4,
		"UPDATE audit_head SET sequence = 8":                9,
		"UPDATE audit_head SET hash = " + db.Blob(zeros):    9,
		"UPDATE audit_head SET seal = " + db.Blob(zeros):    9,
		"INSERT INTO audit_blocks SELECT * FROM ahead":      10,
	}
	replaced := func(old, with string) {
		all["UPDATE audit_blocks SET records = replace(records, '"+old+"', '"+with+"')"+row4] = 4
	}
	replaced(`"unread":true`, `"unread":false`)
	replaced(`"P000042"`, `"P000044"`)
	replaced(fourth.String(), zeros)
	return all
}

var zeros = strings.Repeat("00", 32)
