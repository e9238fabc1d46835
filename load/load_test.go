package load

import (
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

func whole() Spec {
	weight := 2.5
	return Spec{
		URL: "http://127.0.0.1:1/{{.id}}", Rate: 100, Poisson: true, Duration: 3 * time.Second,
		Method: "PUT", Header: http.Header{"X-A": {"b", "c"}}, Body: []byte{0, 1, 255}, Connection: Connection{Insecure: true},
		Data: Rows{"csv", []byte("id\nP1\nP2\n")}, DataRandom: true,
		Mix:     []Entry{{Class: "x", Weight: &weight, Priority: "low", Path: "/y", Method: "get", Headers: map[string]string{"X-B": "c"}, Body: "{{.id}}"}, {}},
		Timeout: time.Second, Interval: time.Second, Seed: 7, MaxInFlight: 10,
	}
}

// What another process reads is the load that was written.
func TestASpecSurvivesItsJSON(t *testing.T) {
	for _, want := range []Spec{whole(), {}, {Connection: Connection{true, []byte("a"), []byte("b"), []byte("c"), "d", "e"}}, {URL: "u", Trace: []time.Duration{1, 2}, Clients: 3, Requests: 4, HTTP2: true, Profile: "1:1s"}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseSpec(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %+v", text, err, got)
		}
	}
	for _, bad := range []string{"", "[]", `{"url":"u"}{}`, `{"speed":1}`} {
		if _, err := ParseSpec([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestTwoProcessesPlanTheSameRequests(t *testing.T) {
	s := whole()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := plan(t, s), plan(t, other)
	if a, b := slices.Collect(loadgen.Times(mine.Run.Open)), slices.Collect(loadgen.Times(theirs.Run.Open)); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("%d and %d requests at different times", len(a), len(b))
	}
	if !slices.Equal(mine.Classes, theirs.Classes) || !slices.Equal(mine.Classes, []string{"x", "other"}) {
		t.Errorf("classes %v and %v", mine.Classes, theirs.Classes)
	}
}

func plan(t *testing.T, s Spec) *Plan {
	t.Helper()
	p, err := s.Plan()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Some editors write a byte order mark, which was an error of the first character.
func TestAByteOrderMarkIsNoPartOfAMix(t *testing.T) {
	if mix, err := ReadMix([]byte("\ufeff[{\"path\": \"/x\"}]\r\n")); err != nil || len(mix) != 1 || mix[0].Path != "/x" {
		t.Errorf("%+v, %v", mix, err)
	}
}

func TestBadLoadsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"exclude each other":    func(s *Spec) { s.Clients = 1 },
		"either --rate":         func(s *Spec) { s.Rate = 0 },
		"--rate is NaN":         func(s *Spec) { s.Rate = math.NaN() },
		"at least 1ms":          func(s *Spec) { s.Interval = 0 },
		"cannot be negative":    func(s *Spec) { s.MaxInFlight = 0 },
		"goes with --data":      func(s *Spec) { s.Data = Rows{} },
		"csv or jsonl":          func(s *Spec) { s.Data.Format = "xml" },
		"--data: ":              func(s *Spec) { s.Data.Text = nil },
		"begins with /":         func(s *Spec) { s.Mix[0].Path = "y" },
		"unknown priority":      func(s *Spec) { s.Mix[0].Priority = "urgent" },
		"a mix of 0 parts":      func(s *Spec) { s.Mix = []Entry{} },
		"either --duration":     func(s *Spec) { s.Requests = 3 },
		"no column \"patient\"": func(s *Spec) { s.URL = "http://127.0.0.1:1/{{.patient}}" },
	} {
		s := whole()
		change(&s)
		if _, err := s.Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzSpec(f *testing.F) {
	for _, s := range []Spec{whole(), {}} {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSpec(text)
		if err != nil {
			return
		}
		if p, err := s.Plan(); err == nil {
			p.Close()
		}
	})
}
