package export

import (
	"errors"
	"os"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// Whatever is on disk is an export or damaged, and a name leads to the file that it names.
func FuzzWhatIsOnDisk(f *testing.F) {
	f.Add([]byte(`{"types":["Patient"],"url":"/$export","started":"2026-01-01T00:00:00Z"}`), []byte(`{"last":"P000007","total":7,"files":[{"type":"Patient","count":7,"bytes":2}]}`),
		[]byte(`{"state":"complete","parts":1,"at":"2026-01-01T00:00:00Z"}`), "Patient-000001.ndjson")
	f.Add([]byte(`null`), []byte(`{"last":""}`), []byte(`{"state":"running"}`), "../request.json")
	f.Fuzz(func(t *testing.T, request, part, end []byte, name string) {
		d, err := openDisk(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		e, ticket := &Exports{disk: d}, access.NewTicket("somebody")
		err = errors.Join(os.MkdirAll(d.path(ticket, folder(1)), 0o700), os.Mkdir(d.path(ticket, endName), 0o700),
			os.WriteFile(d.path(ticket, requestName), request, 0o600), os.WriteFile(d.path(ticket, folder(1), partName), part, 0o600),
			os.WriteFile(d.path(ticket, folder(1), peopleName), []byte("[]"), 0o600), os.WriteFile(d.path(ticket, folder(1), "Patient"), []byte("{}"), 0o600),
			os.WriteFile(d.path(ticket, endName, endName+".json"), end, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Status(ticket)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		if err == nil && s.State != Complete && s.State != Failed {
			t.Errorf("it has an end, and is %s", s.State)
		}
		c, err := e.Open(ticket, name)
		switch {
		case err == nil && (name != fileName(c.Type, 1) || c.Type != access.Patients):
			t.Errorf("%q is %s", name, c.Type)
		case err == nil:
			_ = c.Close()
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged):
			t.Error(err)
		}
	})
}
