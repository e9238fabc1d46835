package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// searches is the part of the exam about PatientSearch. What must be found is found
// here by looking at everybody.
func searches(t *testing.T, store patientapi.Store) {
	everybody := population()
	t.Run("each condition", func(t *testing.T) { each(t, store, everybody) })
	t.Run("every combination of conditions", func(t *testing.T) { combined(t, store, everybody) })
	t.Run("pages of every size", func(t *testing.T) { pages(t, store, everybody) })
	t.Run("what was typed is not a pattern", func(t *testing.T) { plain(t, store, everybody) })
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

func each(t *testing.T, store patientapi.Store, everybody []patientapi.Patient) {
	var page patientapi.Page
	some, none := 0, 0
	ask := func(q patientapi.PatientSearch) {
		t.Helper()
		q.Limit = 3
		if examine(t, store, q, everybody, &page) > 0 {
			some++
		} else {
			none++
		}
	}
	ask(patientapi.PatientSearch{})
	ask(patientapi.PatientSearch{IDs: []string{}})
	ask(patientapi.PatientSearch{IDs: []string{"P000301", "P000000"}})
	ask(patientapi.PatientSearch{IDs: []string{"P000009", "P000301", "P000002", "P000009"}})
	ask(patientapi.PatientSearch{After: "P000300"})
	ask(patientapi.PatientSearch{After: "P999999"})
	for _, system := range []string{"mrn", "register", "nothing", "MRN"} {
		ask(patientapi.PatientSearch{Identifier: patientapi.Identifier{System: system}})
	}
	first, second := everybody[0], everybody[1]
	for _, also := range []patientapi.Also{
		{Name: first.Name.Family[:1]}, {Name: second.Name.Given}, {Identifier: first.Identifiers[0]}, {Identifier: second.Identifiers[0]},
		{Identifier: patientapi.Identifier{System: "register"}}, {Identifier: patientapi.Identifier{Value: first.Identifiers[0].Value}, Name: strings.ToUpper(first.Name.Given)}, {},
	} {
		ask(patientapi.PatientSearch{Name: first.Name.Given[:1], Also: []patientapi.Also{also}})
		ask(patientapi.PatientSearch{Identifier: first.Identifiers[0], Also: []patientapi.Also{also, {Name: first.Name.Given}}})
		ask(patientapi.PatientSearch{Also: []patientapi.Also{also, also, {Identifier: patientapi.Identifier{System: "mrn"}}}})
	}
	for i := 0; i < len(everybody); i += 61 {
		p := everybody[i]
		for _, id := range p.Identifiers {
			ask(patientapi.PatientSearch{Identifier: id})
			ask(patientapi.PatientSearch{Identifier: patientapi.Identifier{Value: id.Value}})
			ask(patientapi.PatientSearch{Identifier: patientapi.Identifier{System: "other", Value: id.Value}})
			ask(patientapi.PatientSearch{Identifier: patientapi.Identifier{System: id.System, Value: strings.ToLower(id.Value)}})
		}
		for _, name := range []string{p.Name.Given, p.Name.Family} {
			for _, typed := range []string{name, name[:1], strings.ToUpper(name[:2]), strings.ToLower(name), name[1:], name + "x"} {
				ask(patientapi.PatientSearch{Name: typed})
			}
		}
		for _, d := range around(p.BirthDate) {
			ask(patientapi.PatientSearch{Birth: d})
		}
		for _, u := range about(p.Updated) {
			ask(patientapi.PatientSearch{Updated: u})
		}
	}
	if some < 50 || none < 50 {
		t.Errorf("%d searches found somebody and %d nobody: too few to tell", some, none)
	}
}

// around returns days that end or begin with date, and some that are beside it.
func around(date string) []patientapi.Dates {
	d, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	before, after := d.AddDate(0, 0, -1).Format(time.DateOnly), d.AddDate(0, 0, 1).Format(time.DateOnly)
	return []patientapi.Dates{
		{First: date}, {Last: date}, {First: date, Last: date}, {First: after}, {Last: before}, {First: after, Last: before},
		{First: "0001-01-01", Last: "9999-12-31"}, {First: "9999-12-31"}, {Last: "0001-01-01"},
	}
}

// about returns times that end or begin with t, and some a moment beside it.
func about(t time.Time) []patientapi.Times {
	zone := time.FixedZone("", 5*60*60)
	return []patientapi.Times{
		{Since: t}, {Before: t}, {Since: t, Before: t}, {Since: t, Before: t.Add(time.Nanosecond)},
		{Since: t.Add(time.Nanosecond)}, {Since: t.Add(-time.Nanosecond), Before: t.Add(time.Second).In(zone)},
		{Before: t.Add(time.Nanosecond).In(zone)}, {Before: t.Add(-time.Nanosecond)}, {Since: t.In(zone), Before: t.Add(time.Hour)},
		{Since: t, Before: t.Add(-time.Hour)},
		{Since: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), Before: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
	}
}

// combined asks for conditions that one patient meets, each of them set or not, and for
// the same with one condition that the patient does not meet.
func combined(t *testing.T, store patientapi.Store, everybody []patientapi.Patient) {
	var page patientapi.Page
	conditions := []func(q *patientapi.PatientSearch, p, other patientapi.Patient){
		func(q *patientapi.PatientSearch, p, other patientapi.Patient) {
			q.IDs = []string{other.ID, p.ID, "P000301"}
		},
		func(q *patientapi.PatientSearch, p, _ patientapi.Patient) { q.Identifier = p.Identifiers[0] },
		func(q *patientapi.PatientSearch, p, _ patientapi.Patient) { q.Name = p.Name.Given[:1] },
		func(q *patientapi.PatientSearch, p, _ patientapi.Patient) {
			q.Birth = patientapi.Dates{First: p.BirthDate[:4] + "-01-01"}
		},
		func(q *patientapi.PatientSearch, p, _ patientapi.Patient) {
			q.Updated = patientapi.Times{Since: p.Updated.AddDate(-1, 0, 0), Before: p.Updated.AddDate(0, 6, 0)}
		},
		func(q *patientapi.PatientSearch, _, _ patientapi.Patient) { q.After = "P000020" },
	}
	p, other := everybody[298], everybody[277]
	for set := range 1 << len(conditions) {
		q := patientapi.PatientSearch{Limit: 3}
		for k, condition := range conditions {
			if set>>k&1 == 1 {
				condition(&q, p, other)
			}
		}
		if examine(t, store, q, everybody, &page) == 0 {
			t.Fatalf("%+v: the exam is wrong: nobody is to be found", plainly(q))
		}
		for k, condition := range conditions {
			if bad := q; set>>k&1 == 1 {
				condition(&bad, everybody[0], everybody[1])
				examine(t, store, bad, everybody, &page)
			}
		}
	}
}

func pages(t *testing.T, store patientapi.Store, everybody []patientapi.Patient) {
	var page patientapi.Page // its memory is used again and again
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

func plain(t *testing.T, store patientapi.Store, everybody []patientapi.Patient) {
	var page patientapi.Page
	first := everybody[0]
	for _, typed := range hostile {
		for _, name := range []string{typed, first.Name.Given[:2] + typed, typed + first.Name.Given} {
			examine(t, store, patientapi.PatientSearch{Name: name}, everybody, &page)
		}
		for _, id := range []patientapi.Identifier{
			{Value: typed}, {System: "mrn", Value: typed}, {System: typed, Value: first.Identifiers[0].Value},
			{Value: first.Identifiers[0].Value + typed}, {System: "mrn" + typed, Value: first.Identifiers[0].Value},
		} {
			examine(t, store, patientapi.PatientSearch{Identifier: id}, everybody, &page)
		}
	}
	if !slices.ContainsFunc(hostile, func(s string) bool { return !utf8.ValidString(s) }) {
		t.Error("nothing hostile is malformed text")
	}
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
