package app

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// audited answers three requests with audit on, one of them without a token, and returns
// the file of the records.
func audited(t *testing.T, keyFile string) string {
	t.Helper()
	c := quick()
	c.Audit, c.Admin.Addr = AuditFlags{Mode: auditOn, DB: filepath.Join(t.TempDir(), "audit.db"), KeyFile: keyFile}, "127.0.0.1:0"
	r := start(t, c)
	for path, want := range map[string]int{"/api/v1/patients/P000042": 200, "/api/v1/patients/P999999": 404, "/livez": 200, "/openapi.json": 200} {
		if status, _ := r.get(t, path); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status := statusOf(t, r.addr, "/api/v1/patients/P000001", ""); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	_, metrics := r.operate(t, "/metrics")
	for _, want := range []string{`patientapi_audit_records_total{result="recorded"} 3`, `patientapi_audit_records_total{result="failed"} 0`, "patientapi_audit_waiting 0", "patientapi_audit_lost 0"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if report, err := r.report(t); err != nil || report.Audit == nil || report.Audit.Recorded != 3 || report.Audit.Failed != 0 {
		t.Errorf("%v, %+v", err, report.Audit)
	}
	return c.Audit.DB
}

func verify(t *testing.T, c VerifyCommand) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := c.Run(t.Context(), &stdout, t.Output())
	return stdout.String(), err
}

func change(t *testing.T, file string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAccessesAreOnRecordAndVerified(t *testing.T) {
	db, head := audited(t, ""), filepath.Join(t.TempDir(), "head")
	out, err := verify(t, VerifyCommand{DB: db, Head: head})
	if err != nil || !strings.HasPrefix(out, "3 records, from 20") || !strings.Contains(out, "the chain is whole; its head is\n3 ") {
		t.Fatalf("%v\n%s", err, out)
	}
	// It did not say whether there was a head: one whose path was misspelled seemed to fit.
	if !strings.Contains(out, "there was no head in "+head+" to compare") {
		t.Error(out)
	}
	if out, err := verify(t, VerifyCommand{DB: db, Head: head}); err != nil || !strings.Contains(out, "the head in "+head+", that of record 3, is in the chain") {
		t.Errorf("%v\n%s", err, out)
	}
	if kept, err := os.ReadFile(head); err != nil || !strings.HasSuffix(out, "\n"+string(kept)) {
		t.Errorf("%q, %v", kept, err)
	}
	var result struct {
		Whole   bool
		Records int
		Known   string
	}
	out, err = verify(t, VerifyCommand{DB: db, Head: head, JSON: true})
	if err != nil || json.Unmarshal([]byte(out), &result) != nil || !result.Whole || result.Records != 3 || !strings.HasPrefix(result.Known, "3 ") {
		t.Errorf("%v\n%s", err, out)
	}

	change(t, db, `UPDATE audit_blocks SET records = replace(records, '"subject":"', '"subject":"somebody else') WHERE first = 2`)
	out, err = verify(t, VerifyCommand{DB: db, Head: head})
	if !errors.Is(err, errNotWhole) || errors.Is(err, ErrUsage) || !strings.Contains(out, "record 2: ") || strings.Contains(out, "is whole") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out+err.Error(), "somebody else") || strings.Contains(out, "P000042") {
		t.Errorf("it tells what is on record: %s", out)
	}
}

// Who keeps a head is told that the records are gone, whatever they became, and not that the command line
// is wrong: it was exit code 2, as for a mistyped flag.
func TestDestroyedRecordsDoNotVerify(t *testing.T) {
	whole, err := os.ReadFile(flushed(t, audited(t, "")))
	require.NoError(t, err)
	const page = 4096 // of SQLite
	emptied := func(file string) { change(t, file, "DELETE FROM audit_blocks", "DELETE FROM audit_head") }
	for name, c := range map[string]struct {
		text   []byte
		change func(file string)
		said   string
	}{
		"garbage":             {bytes.Repeat([]byte("garbage "), 4096), nil, "record 1: the records from here to 3, where the kept head is, were destroyed"},
		"cut in the middle":   {whole[:len(whole)/2], nil, "record 1: the records from here to 3"},
		"a page overwritten":  {slices.Concat(whole[:len(whole)-page], bytes.Repeat([]byte{0xff}, page)), nil, "record "},
		"without its tables":  {whole, func(f string) { change(t, f, "DROP TABLE audit_blocks", "DROP TABLE audit_head") }, "record 1: "},
		"without its records": {whole, emptied, "record 1: the records from here to 3, where the kept head is, are missing"},
		"gone":                {whole, func(f string) { _ = os.Remove(f) }, "record 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db, head := filepath.Join(dir, "audit.db"), filepath.Join(dir, "head")
			// The head of the whole chain is kept.
			require.NoError(t, os.WriteFile(db, whole, 0o600))
			if _, err := verify(t, VerifyCommand{DB: db, Head: head}); err != nil {
				t.Fatal(err)
			}
			kept, err := os.ReadFile(head)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(db, c.text, 0o600))
			if c.change != nil {
				c.change(db)
			}
			out, err := verify(t, VerifyCommand{DB: db, Head: head})
			if err == nil || errors.Is(err, ErrUsage) || errors.Is(err, ErrKeyNeeded) || !strings.Contains(out, c.said) {
				t.Errorf("%v\n%s", err, out)
			}
			if out, err := verify(t, VerifyCommand{DB: db, Head: head, JSON: true}); err == nil || strings.Contains(out, `"whole":true`) || !strings.Contains(out, `"faults":[{"sequence":1`) {
				t.Errorf("%v\n%s", err, out)
			}
			if now, err := os.ReadFile(head); err != nil || !bytes.Equal(now, kept) {
				t.Errorf("the kept head became %q, %v", now, err)
			}
		})
	}
	// Without a head nothing says that there were records: another file was meant, perhaps.
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("a text"), 0o600))
	if _, err := verify(t, VerifyCommand{DB: other}); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
	if _, err := verify(t, VerifyCommand{DB: other, Head: filepath.Join(t.TempDir(), "nowhere", "head")}); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}

// flushed writes what is beside a SQLite file into it, and returns its name.
func flushed(t *testing.T, file string) string {
	t.Helper()
	change(t, file, "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE")
	return file
}

func TestRecordsWithAKeyNeedIt(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("0123456789abcdef\n"), 0o600))
	db := audited(t, key)
	defer func() {
		change(t, db, "DELETE FROM audit_blocks WHERE first = 2")
		if _, err := verify(t, VerifyCommand{DB: db}); !errors.Is(err, errNotWhole) {
			t.Errorf("without the key and without a record: %v", err)
		}
	}()
	if out, err := verify(t, VerifyCommand{DB: db, KeyFile: key}); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	head := filepath.Join(t.TempDir(), "head")
	out, err := verify(t, VerifyCommand{DB: db, Head: head})
	if !errors.Is(err, ErrKeyNeeded) || !strings.Contains(err.Error(), "--key-file") || strings.Contains(out, "is whole") || !strings.Contains(out, "not what they say") {
		t.Errorf("without the key: %v\n%s", err, out)
	}
	if _, err := os.Stat(head); err == nil {
		t.Error("the head of a chain that was not verified was kept")
	}
	if out, err := verify(t, VerifyCommand{DB: db, JSON: true}); !errors.Is(err, ErrKeyNeeded) || !strings.Contains(out, `"whole":false,"key_needed":true`) {
		t.Errorf("%v\n%s", err, out)
	}
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("fedcba9876543210\n"), 0o600))
	if _, err := verify(t, VerifyCommand{DB: db, KeyFile: other}); !errors.Is(err, errNotWhole) {
		t.Errorf("with another key: %v", err)
	}
	c := quick()
	c.Audit = AuditFlags{Mode: auditOn, DB: db}
	if err := c.Run(t.Context(), new(bytes.Buffer), new(bytes.Buffer)); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--audit-key-file") {
		t.Errorf("a service without the key: %v", err)
	}
}

// What a handler has sent goes on record when it returns, and may do so after its server
// is closed: the parts stay open that long.
func TestPartsStayOpenForHandlersThatWereCutOff(t *testing.T) {
	s, begun, cut := new(service), make(chan struct{}), make(chan struct{})
	recorded := false
	h := s.held(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-cut
		recorded = true
	}))
	go h.ServeHTTP(nil, nil)
	<-begun
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		s.settle()
	}()
	select {
	case <-settled:
		t.Error("it did not wait")
	default:
	}
	close(cut)
	<-settled
	if !recorded {
		t.Error("it did not wait for the record")
	}
}
