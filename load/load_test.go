package load

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
)

func whole() Spec {
	weight := 2.5
	data, err := loadgen.ReadCSV(strings.NewReader("id\nP1\nP2\n"))
	if err != nil {
		panic(err)
	}
	return Spec{
		Request: loadgen.HTTPConfig{
			URL: "http://127.0.0.1:1/{{.id}}", Method: "PUT", Header: http.Header{"X-A": {"b", "c"}}, Body: []byte{0, 1, 255}, Data: data, Timeout: time.Second,
		},
		Rate: 100, Poisson: true, Duration: 3 * time.Second,
		Mix:      []Entry{{Class: "x", Weight: &weight, Priority: "low", Path: "/y", Method: "get", Headers: map[string]string{"X-B": "c"}, Body: "{{.id}}"}, {}},
		Interval: time.Second, Seed: 7, MaxInFlight: 10,
	}
}

func TestAMixHasItsClasses(t *testing.T) {
	if p := plan(t, whole()); !slices.Equal(p.Classes, []string{"x", "other"}) {
		t.Errorf("classes %v", p.Classes)
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
		"begins with /":         func(s *Spec) { s.Mix[0].Path = "y" },
		"unknown priority":      func(s *Spec) { s.Mix[0].Priority = "urgent" },
		"a mix of 0 parts":      func(s *Spec) { s.Mix = []Entry{} },
		"either --duration":     func(s *Spec) { s.Requests = 3 },
		"no column \"patient\"": func(s *Spec) { s.Request.URL = "http://127.0.0.1:1/{{.patient}}" },
	} {
		s := whole()
		change(&s)
		if _, err := s.Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzReadMix(f *testing.F) {
	f.Add([]byte(`[{"class": "x", "weight": 2.5, "priority": "low", "path": "/y", "method": "get", "headers": {"X-B": "c"}, "body": "{{.id}}"}, {}]`))
	for _, bad := range []string{"", "{}", "[]", `[{}]{}`, `[{"speed": 1}]`} {
		f.Add([]byte(bad))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		mix, err := ReadMix(text)
		if (err == nil) != (len(mix) > 0) {
			t.Fatalf("%d requests, %v", len(mix), err)
		}
		s := whole()
		s.Mix = mix
		if p, err := s.Plan(); err == nil {
			p.Close()
		}
	})
}
