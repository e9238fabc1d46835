package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// searches is the part of the exam about PatientSearch. What must be found is found
// here by looking at everybody.
func searches(t *testing.T, store patientapi.Store) {
	everybody := population()
	t.Run("conditions of every kind", func(t *testing.T) { conditions(t, store, everybody) })
	t.Run("pages of every size", func(t *testing.T) { pages(t, store, everybody) })
	t.Run("malformed ids", func(t *testing.T) { malformedSearch(t, store) })
}

func population() []patientapi.Patient {
	all := make([]patientapi.Patient, Patients)
	for i := range all {
		patientapi.Generator{Seed: Seed}.Patient(i+1, &all[i])
	}
	return all
}

// expected returns those of everybody whom q asks for, on one page of any length.
func expected(q patientapi.PatientSearch, everybody []patientapi.Patient) (found []patientapi.Patient) {
	for _, p := range everybody {
		if matches(q, p) {
			found = append(found, p)
		}
	}
	return found
}

func matches(q patientapi.PatientSearch, p patientapi.Patient) bool {
	if q.IDs != nil && !slices.Contains(q.IDs, p.ID) {
		return false
	}
	for _, one := range append([]patientapi.Also{{Identifier: q.Identifier, Name: q.Name}}, q.Also...) {
		if want := one.Identifier; want.Value+want.System != "" && !slices.ContainsFunc(p.Identifiers, func(have patientapi.Identifier) bool {
			return (want.Value == "" || have.Value == want.Value) && (want.System == "" || have.System == want.System)
		}) {
			return false
		}
		if prefix := upper(one.Name); !strings.HasPrefix(upper(p.Name.Given), prefix) && !strings.HasPrefix(upper(p.Name.Family), prefix) {
			return false
		}
	}
	if first, last := q.Birth.First, q.Birth.Last; p.BirthDate < first || last != "" && p.BirthDate > last {
		return false
	}
	if p.Updated.Before(q.Updated.Since) || !q.Updated.Before.IsZero() && !p.Updated.Before(q.Updated.Before) {
		return false
	}
	return p.ID > q.After
}

// upper raises A to Z alone.
func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - ('a' - 'A')
		}
	}
	return string(b)
}

// examine asks for the first page that q asks for, and returns how many are on it.
func examine(t *testing.T, store patientapi.Store, q patientapi.PatientSearch, everybody []patientapi.Patient, page *patientapi.Page) int {
	t.Helper()
	want := expected(q, everybody)
	more := len(want) > q.PageSize()
	want = want[:min(len(want), q.PageSize())]
	if err := store.Search(t.Context(), q, page); err != nil {
		t.Fatalf("%+v: %v", plainly(q), err)
	}
	if got, want := shown(page.Patients), shown(want); got != want {
		t.Fatalf("%+v: found\n %s\nwant\n %s", plainly(q), got, want)
	}
	if page.More != more {
		t.Fatalf("%+v: more is %v after %d", plainly(q), page.More, len(want))
	}
	from := q
	from.After = ""
	all := len(expected(from, everybody))
	if n, err := store.Count(t.Context(), q); n != all || err != nil {
		t.Fatalf("%+v: %d are counted, want %d, %v", plainly(q), n, all, err)
	}
	return len(want)
}

// shown writes everything that is known of a few patients, and of many the ids.
func shown(list []patientapi.Patient) string {
	if 0 < len(list) && len(list) <= 40 {
		return text(list)
	}
	ids := make([]string, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	return strings.Join(ids, " ")
}

// plainly shows a search, which hides itself; those of the exam ask for invented people.
func plainly(q patientapi.PatientSearch) any {
	type open patientapi.PatientSearch
	return open(q)
}

// conditions asks for conditions that one patient meets, or almost meets, each of them set or not.
func conditions(t *testing.T, store patientapi.Store, everybody []patientapi.Patient) {
	const searches = 1500
	d := drawer{rand.New(rand.NewPCG(1, 2)), everybody}
	var page patientapi.Page // its memory is used again and again
	found := 0
	for range searches {
		if examine(t, store, d.search(), everybody, &page) > 0 {
			found++
		}
	}
	if found < searches/5 || found > searches*4/5 {
		t.Errorf("%d of %d searches found somebody: that tells little", found, searches)
	}
	for _, typed := range hostile { // each once more, beside nothing else
		known := everybody[0].Identifiers[0]
		for _, q := range []patientapi.PatientSearch{{Name: typed}, {Identifier: patientapi.Identifier{Value: typed}}, {Identifier: patientapi.Identifier{System: typed, Value: known.Value}}} {
			examine(t, store, q, everybody, &page)
		}
	}
}

// drawer draws searches.
type drawer struct {
	*rand.Rand
	everybody []patientapi.Patient
}

func (d drawer) oneIn(n int) bool { return d.IntN(n) == 0 }

func one[T any](d drawer, of ...T) T { return of[d.IntN(len(of))] }

func (d drawer) search() (q patientapi.PatientSearch) {
	p, other := one(d, d.everybody...), one(d, d.everybody...)
	q.Limit = 1 + d.IntN(3)
	if d.oneIn(4) {
		q.IDs = one(d, []string{}, []string{"P000301", "P000000"}, []string{p.ID}, []string{other.ID, "P000301", p.ID, other.ID})
	}
	if d.oneIn(4) {
		q.After = one(d, other.ID, "P000001", "P999999")
	}
	if d.oneIn(3) {
		q.Identifier = d.identifier(p)
	}
	if d.oneIn(3) {
		q.Name = d.name(p)
	}
	for d.oneIn(4) {
		q.Also = append(q.Also, one(d, patientapi.Also{}, patientapi.Also{Name: d.name(p)}, patientapi.Also{Identifier: d.identifier(p)}, patientapi.Also{Identifier: d.identifier(p), Name: d.name(p)}))
	}
	if d.oneIn(3) {
		q.Birth = patientapi.Dates{First: one(d, "", d.day(p), p.BirthDate[:4]+"-01-01", "0001-01-01"), Last: one(d, "", d.day(p), p.BirthDate[:4]+"-12-31", "9999-12-31")}
	}
	if d.oneIn(3) {
		q.Updated = patientapi.Times{Since: d.moment(p, -1), Before: d.moment(p, 1)}
	}
	return q
}

// text returns text as somebody may type it, or what strangers type.
func (d drawer) text(text string) string {
	if d.oneIn(4) {
		typed := one(d, hostile...)
		return one(d, typed, text[:2]+typed, typed+text)
	}
	return one(d, text, text, upper(text), strings.ToLower(text), text+"x")
}

func (d drawer) name(p patientapi.Patient) string {
	name := d.text(one(d, p.Name.Given, p.Name.Family))
	return one(d, name, name[:min(1, len(name))], name[min(1, len(name)):])
}

func (d drawer) identifier(p patientapi.Patient) patientapi.Identifier {
	id := one(d, p.Identifiers...)
	return patientapi.Identifier{System: one(d, "", id.System, id.System, "MRN", "register", d.text(id.System)), Value: one(d, "", id.Value, id.Value, d.text(id.Value))}
}

// day is that of the patient's birth, or one beside it.
func (d drawer) day(p patientapi.Patient) string {
	born, err := time.Parse(time.DateOnly, p.BirthDate)
	if err != nil {
		panic(err)
	}
	return born.AddDate(0, 0, d.IntN(3)-1).Format(time.DateOnly)
}

// moment is that of the record's last change, a moment beside it or one far away on that side, or
// no bound.
func (d drawer) moment(p patientapi.Patient, side int) time.Time {
	far := time.Date(5000+4999*side, 1, 2, 0, 0, 0, 0, time.UTC)
	at := p.Updated.In(one(d, time.UTC, time.FixedZone("", 5*60*60)))
	return one(d, time.Time{}, at, at.Add(1), at.Add(-1), at.AddDate(0, 0, side), far)
}

func pages(t *testing.T, store patientapi.Store, everybody []patientapi.Patient) {
	var page patientapi.Page
	for _, q := range []patientapi.PatientSearch{
		{}, {Name: "a"}, {Birth: patientapi.Dates{First: "1980-01-01", Last: "1995-12-31"}},
		{Updated: patientapi.Times{Since: time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		found := len(expected(q, everybody))
		for _, size := range []int{1, 7, found - 1, found, found + 1, patientapi.MaxSearch + 1, 0, -1} {
			q.Limit, q.After = size, ""
			if size == 1 {
				q.After = "P000270" // enough of single steps
			}
			for examine(t, store, q, everybody, &page); page.More; examine(t, store, q, everybody, &page) {
				q.After = page.Patients[len(page.Patients)-1].ID
			}
		}
	}
	ids := make([]string, 0, len(everybody))
	for _, p := range everybody {
		ids = append(ids, p.ID)
	}
	slices.Reverse(ids)
	examine(t, store, patientapi.PatientSearch{IDs: ids, Limit: 37}, everybody, &page)
}

// hostile is what strangers type where a name or an identifier is asked for.
var hostile = []string{
	"%", "_", "a%", "_a", "%%%", "[a-z]", "*", "?", ".", "^A", "A.*", "\\", "\\%", "'", "''", `"`, "`", ";", "--", "/*", "a'--", "\x1e", "\x1f",
	"' OR '1'='1", "' OR 1=1 --", "a' OR 'a'='a", "'; DROP TABLE patients; --", "') UNION SELECT id FROM patients --", "a\" OR \"\"=\"",
	"1; SELECT pg_sleep(10)", "$1", "?1", ":name", "@p1", "{}", "[]", "null", "NULL", "true", "0", "-1", "1e999", "\x00", "a\x00", "\x00a", "\xff", "\xff\xff",
	"a\xff", "\xc3", "Å", "å", "İ", "ı", "K", "ſ", "ß", "é", "\u200b", " ", "  A", "A ", "\n", "\t", "\r\n", "٪", "😀", "\U0010ffff",
	"../../etc/passwd", "%27", "%00", "<script>", "${jndi:ldap://x}", strings.Repeat("a", 10_000), strings.Repeat("%", 1000),
}

func malformedSearch(t *testing.T, store patientapi.Store) {
	for _, id := range malformed {
		for _, q := range []patientapi.PatientSearch{{After: id}, {IDs: []string{"P000001", id}}} {
			if id == "" && q.IDs == nil {
				continue // from the start
			}
			page := patientapi.Page{Patients: make([]patientapi.Patient, 2), More: true}
			if q.IDs != nil {
				if n, err := store.Count(t.Context(), q); !errors.Is(err, patientapi.ErrMalformedID) || n != 0 {
					t.Errorf("%+v: %d are counted, %v", plainly(q), n, err)
				}
			}
			if err := store.Search(t.Context(), q, &page); !errors.Is(err, patientapi.ErrMalformedID) || len(page.Patients) > 0 || page.More {
				t.Errorf("%+v: %v, %v", plainly(q), page, err)
			}
		}
	}
}
