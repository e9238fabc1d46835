package audittest_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
)

// The format of what is hashed must not change: records of years depend on it. The
// heads were computed by another program, from the description of the package.
func TestHashesStayTheSame(t *testing.T) {
	for _, c := range []struct {
		key  audit.Key
		want string
	}{
		{nil, "2 ea204db42d181b4da8583bd8013aad59b6fd471191de99dc1b0d9432f660f9a8"},
		{audit.Key("0123456789abcdef"), "2 82cc68b4f52fdfbe3629d3217973d096a6a644f0612a194a06205d874e915fc5"},
	} {
		var m audittest.Memory
		audittest.Record(t, &m, c.key, audittest.Typical, audittest.Everything)
		if got := audittest.Whole(t, &m, c.key).Head.String(); got != c.want {
			t.Errorf("head is %s, want %s", got, c.want)
		}
	}
}

// chainOf returns a chain of n records, each different, and its head.
func chainOf(t testing.TB, key audit.Key, n int) *audittest.Memory {
	t.Helper()
	m, events := new(audittest.Memory), make([]audit.Event, n)
	for i := range events {
		e := audittest.Everything
		e.Time = e.Time.Add(time.Duration(i) * time.Second)
		e.RequestID, e.Patients = fmt.Sprint("r-", i), []string{fmt.Sprintf("P%06d", i), "P000001"}
		events[i] = e
	}
	audittest.Record(t, m, key, events...)
	return m
}

// Whatever byte of whichever record is changed, removed or doubled, Verify names that record.
func TestEveryMutationIsFound(t *testing.T) {
	for _, key := range []audit.Key{nil, audit.Key("0123456789abcdef")} {
		m := chainOf(t, key, 3)
		for block := range 3 {
			text := m.Replace(block, nil)
			for at, c := range text {
				for _, with := range [][]byte{nil, {c, c}, {c ^ 1}, {c ^ 4}} {
					m.Replace(block, slices.Concat(text[:at], with, text[at+1:]))
					if r, err := audit.Verify(t.Context(), m, key, audit.Head{}, nil); err != nil || r.Found == 0 || r.Faults[0].Sequence != int64(block)+1 {
						t.Fatalf("%q for byte %d of record %d: %v, %+v", with, at, block+1, err, r)
					}
				}
			}
			m.Replace(block, text)
		}
		audittest.Whole(t, m, key)
	}
}

func TestRecordsThatAreMissingOrMovedAreFound(t *testing.T) {
	type records = []audit.Record
	for name, c := range map[string]struct {
		change func(*audit.Head, *records)
		at     int64
		says   string
	}{
		"one removed":         {func(_ *audit.Head, r *records) { *r = slices.Delete(*r, 3, 4) }, 4, "missing"},
		"some removed":        {func(_ *audit.Head, r *records) { *r = slices.Delete(*r, 3, 6) }, 4, "to 6 are missing"},
		"the first removed":   {func(_ *audit.Head, r *records) { *r = (*r)[1:] }, 1, "missing"},
		"the last removed":    {func(_ *audit.Head, r *records) { *r = (*r)[:9] }, 10, "end was removed"},
		"all removed":         {func(_ *audit.Head, r *records) { *r = nil }, 1, "to 10, where the head is"},
		"head removed":        {func(h *audit.Head, _ *records) { *h = audit.Head{} }, 1, "behind the head"},
		"head moved back":     {func(h *audit.Head, r *records) { h.Sequence, h.Hash = 9, (*r)[8].Hash }, 10, "behind the head"},
		"cut with its head":   {func(h *audit.Head, r *records) { h.Sequence, h.Hash, *r = 9, (*r)[8].Hash, (*r)[:9] }, 9, "the head was altered"},
		"twice":               {func(_ *audit.Head, r *records) { *r = slices.Insert(*r, 4, (*r)[3]) }, 4, "more than one"},
		"moved":               {func(_ *audit.Head, r *records) { (*r)[3], (*r)[4] = (*r)[4], (*r)[3] }, 4, "missing"},
		"moved, renumbered":   {func(_ *audit.Head, r *records) { (*r)[3].Event, (*r)[4].Event = (*r)[4].Event, (*r)[3].Event }, 4, "does not fit"},
		"inserted":            {func(_ *audit.Head, r *records) { *r = renumbered(slices.Insert(*r, 4, (*r)[7])) }, 5, "does not fit"},
		"removed, renumbered": {func(_ *audit.Head, r *records) { *r = renumbered(slices.Delete(*r, 3, 4)) }, 4, "does not fit"},
		"before the first":    {func(_ *audit.Head, r *records) { *r = slices.Insert(*r, 0, audit.Record{}) }, 0, "below 1"},
	} {
		m := chainOf(t, nil, 10)
		m.Change(c.change)
		r, err := audit.Verify(t.Context(), m, nil, audit.Head{}, nil)
		if err != nil || r.Found == 0 || r.Faults[0].Sequence != c.at || !strings.Contains(r.Faults[0].What, c.says) {
			t.Errorf("%s: %v, %+v, want %q at %d", name, err, r, c.says, c.at)
		}
	}
}

func renumbered(records []audit.Record) []audit.Record {
	for i := range records {
		records[i].Sequence = int64(i) + 1
	}
	return records
}

// What the chain alone cannot show, a head that was kept elsewhere does.
func TestAKeptHeadShowsWhatTheChainCannot(t *testing.T) {
	earlier := chainOf(t, nil, 5) // as a copy of the storage has it
	kept := audittest.Whole(t, chainOf(t, nil, 8), nil).Head
	rewritten := chainOf(t, nil, 8)
	rewritten.Change(func(h *audit.Head, all *[]audit.Record) { *h, *all = audit.Head{}, nil })
	for i := range 8 {
		e := audittest.Typical
		e.RequestID = fmt.Sprint("forged-", i)
		audittest.Record(t, rewritten, nil, e)
	}
	for name, c := range map[string]struct {
		storage audit.Storage
		at      int64
		says    string
	}{"cut": {earlier, 6, "kept head"}, "rewritten": {rewritten, 8, "rewritten"}} {
		audittest.Whole(t, c.storage, nil)
		r, err := audit.Verify(t.Context(), c.storage, nil, kept, nil)
		if err != nil || r.Found != 1 || r.Faults[0].Sequence != c.at || !strings.Contains(r.Faults[0].What, c.says) {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
	longer := chainOf(t, nil, 30)
	if r, err := audit.Verify(t.Context(), longer, nil, kept, nil); err != nil || r.Found != 0 {
		t.Errorf("a chain that grew: %v, %+v", err, r)
	}
}

func TestWithoutTheKeyNothingFits(t *testing.T) {
	m := chainOf(t, audit.Key("0123456789abcdef"), 3)
	for _, key := range []audit.Key{nil, audit.Key("0123456789abcdeF")} {
		if r, err := audit.Verify(t.Context(), m, key, audit.Head{}, nil); err != nil || r.Keyed != (key == nil) || r.Found == 0 && !r.Keyed {
			t.Errorf("%v, %+v", err, r)
		}
		if _, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: m, Key: key}); err != audit.ErrHead {
			t.Errorf("a writer with another key: %v", err)
		}
	}
}

// What stood behind a head, or beside its number, was ignored: a file of two heads was one.
func TestAHeadHasNothingBehindIt(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for text, good := range map[string]bool{
		"12 " + hash: true, " 12\t" + hash + "\r\n": true,
		"12 " + hash + " 13": false, "12 " + hash + "\n13 " + hash: false, "12 " + hash + "zz": false, "12x " + hash: false, "12 " + hash[2:]: false, "-1 " + hash: false, "12": false, "": false,
	} {
		if h, err := audit.ParseHead(text); (err == nil) != good || good && h.Sequence != 12 {
			t.Errorf("%q: %v, %v", text, h, err)
		}
	}
}

// Without the key all records of a chain seemed to be altered. What can be seen without it
// still is: what is missing, and a record that needs none.
func TestWhatCanBeSeenWithoutTheKey(t *testing.T) {
	key := audit.Key("0123456789abcdef")
	for name, c := range map[string]struct {
		change func(h *audit.Head, r *[]audit.Record)
		keyed  bool
		at     int64 // the first fault; 0 for none
	}{
		"nothing":      {func(*audit.Head, *[]audit.Record) {}, true, 0},
		"one missing":  {func(_ *audit.Head, r *[]audit.Record) { *r = slices.Delete(*r, 2, 3) }, true, 3},
		"no end":       {func(_ *audit.Head, r *[]audit.Record) { *r = (*r)[:4] }, true, 5},
		"another head": {func(h *audit.Head, _ *[]audit.Record) { h.Hash[0]++ }, true, 5},
		"a new chain behind the first records": {func(_ *audit.Head, r *[]audit.Record) {
			other := new(audittest.Memory)
			audittest.Record(t, other, nil, slices.Repeat([]audit.Event{audittest.Typical}, 5)...)
			copy((*r)[:4], other.Records())
		}, false, 5},
	} {
		m := chainOf(t, key, 5)
		m.Change(c.change)
		r, err := audit.Verify(t.Context(), m, nil, audit.Head{}, nil)
		if err != nil || r.Keyed != c.keyed || (r.Found > 0) != (c.at > 0) || c.at > 0 && r.Faults[0].Sequence != c.at {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

// The parts of an event cannot be shifted against each other.
func FuzzNoTwoEventsHaveOneHash(f *testing.F) {
	f.Add("ab", "c", "a", "bc")
	f.Add("", "\x00\x00\x00\x01a", "\x00\x00\x00\x01a", "")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		first, second := audit.Event{RequestID: a, Subject: b, Patients: []string{"P1"}}, audit.Event{RequestID: c, Subject: d, Patients: []string{"P1"}}
		var one, other audittest.Memory
		audittest.Record(t, &one, nil, first)
		audittest.Record(t, &other, nil, second)
		x, y := one.Records()[0], other.Records()[0]
		if same := reflect.DeepEqual(x.Event, y.Event); same != (x.Hash == y.Hash) {
			t.Errorf("%+v\n%+v", x, y)
		}
	})
}

func FuzzParseHead(f *testing.F) {
	f.Add("12 " + strings.Repeat("ab", 32))
	f.Add("-1 00")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := audit.ParseHead(text)
		if err != nil {
			return
		}
		if again, err := audit.ParseHead(h.String()); err != nil || again != h {
			t.Errorf("%q is %v, and then %v, %v", text, h, again, err)
		}
	})
}
