package fhir

import (
	"bytes"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

func newTestSealer(t testing.TB, key []byte) *sealer {
	t.Helper()
	s, err := newSealer(key)
	require.NoError(t, err)
	return s
}

func TestATokenIsGoodForItsKindAndItsTimeAndUnderItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := bytes.Repeat([]byte{7}, PageKeySize)
		s := newTestSealer(t, key)
		want := partSearch{Patient: "P000042", Codes: []string{"8867-4"}, From: 20, Count: 10}
		token, err := seal(s, "Observation", want)
		require.NoError(t, err)
		if got, err := open[partSearch](newTestSealer(t, key), "Observation", token); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("by a replica: %+v %v", got, err)
		}
		if again, _ := seal(s, "Observation", want); again == token {
			t.Error("two tokens of one page are equal: they tell that two people ask the same")
		}
		refused := func(what string, s *sealer, kind, token string) {
			if _, err := open[partSearch](s, kind, token); !errors.Is(err, errPage) {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("another kind", s, "MedicationRequest", token)
		refused("another key", newTestSealer(t, nil), "Observation", token)
		refused("too long", s, "Observation", token+strings.Repeat("A", maxToken))
		for i := range token {
			altered := []byte(token)
			if altered[i] = 'A'; token[i] == 'A' {
				altered[i] = 'B'
			}
			if i < len(token)-1 { // some bits of the last character mean nothing
				refused("altered", s, "Observation", string(altered))
			}
		}
		time.Sleep(pageLife + 2*time.Second)
		refused("too late", s, "Observation", token)
	})
}

// A link to a page was longer than a server takes in a URL.
func TestTheLongestSearchHasALinkThatIsShortEnough(t *testing.T) {
	s := newTestSealer(t, nil)
	q := patientapi.PatientSearch{
		Identifier: patientapi.Identifier{System: strings.Repeat("<", 100), Value: strings.Repeat("&", 100)}, Name: strings.Repeat("\u2028", 33), After: "P000001", Limit: 100,
		Birth: patientapi.Dates{First: "1900-01-01", Last: "2000-01-01"}, Updated: patientapi.Times{Since: time.Now(), Before: time.Now()},
	}
	for range 7 { // as many as may be repeated, in as many bytes as one
		q.Also = append(q.Also, patientapi.Also{})
	}
	for n := range maxIDs {
		q.IDs = append(q.IDs, patientapi.FormatID(n))
	}
	if token, err := seal(s, patientKind, q); err != nil {
		t.Error(err, len(token))
	}
}

// 500 signs that HTML escapes, which a search for codes may have, made a link too long: 500.
func TestASearchForSignsOfHTMLHasALink(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, sign := range []string{"<", ">", "&", `"`, "\u2028"} {
		form := url.Values{"patient": {"P000001"}, "code": {strings.Repeat(sign, 500/len(sign))}}
		if a := post(t, api, "/fhir/Observation/_search", form.Encode()); a.Code != 200 || a.link("self") == "" {
			t.Errorf("%q: %d %.200s", sign, a.Code, a.Body)
		}
	}
}

// A link that was opened with a token for fewer types lost resources: those that the first token
// alone was shown counted as shown to the second.
func TestALinkLosesNothingToANarrowerToken(t *testing.T) {
	accesstest.Roles["narrower"] = access.Principal{Subject: "doctor-3", Role: access.Clinician, Scopes: []string{"user/Patient.rs", "user/MedicationRequest.rs"}}
	defer delete(accesstest.Roles, "narrower")
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, id := range []string{"P000001", "P000002", "P000003"} {
		whole := "/fhir/Patient/" + id + "/$everything"
		narrow := get(t, api, whole, "Authorization", "Bearer narrower")
		if !strings.Contains(narrow.Body.String(), `"suppressed"`) || strings.Contains(narrow.Body.String(), `"Observation/`) {
			t.Errorf("%s: what is withheld is not said: %.300s", id, narrow.Body)
		}
		seen, next := 0, whole+"?_count=1"
		for next != "" {
			a := get(t, api, next)
			if seen += len(a.Entry); a.link("next") == "" {
				break
			}
			next = a.path(t, "next")
			ids, _ := following(t, api, get(t, api, next, "Authorization", "Bearer narrower"), "Authorization", "Bearer narrower")
			rest, want := prescriptions(ids), prescriptions(get(t, api, whole).ids()[seen:])
			if !slices.Equal(rest, want) {
				t.Errorf("%s: after %d resources the narrower token finds %v, want %v", id, seen, rest, want)
			}
		}
	}
}

// prescriptions are those of the ids that are of one.
func prescriptions(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return !strings.Contains(id, "-m") })
}

// Whoever takes over a link gets what that person may see, and no more.
func TestALinkOpensNothingToWhoMayNotSeeIt(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	everybody := get(t, api, "/fhir/Patient?_count=1").path(t, "next")
	named := get(t, api, "/fhir/Patient?_count=1&_id=P000001,P000002,P000003").path(t, "next")
	parts := get(t, api, "/fhir/Observation?patient=P000002&_count=1").path(t, "next")
	const self = "Bearer patient"                                                               // of P000001
	if a := get(t, api, everybody, "Authorization", self); a.Code != 200 || len(a.Entry) != 0 { // behind the own record
		t.Errorf("%d %s", a.Code, a.Body)
	}
	for _, u := range []string{named, parts} {
		if a := get(t, api, u, "Authorization", self); a.Code != 403 {
			t.Errorf("%d %s", a.Code, a.Body)
		}
		if a := get(t, api, u, "Authorization", "Bearer administrator"); a.Code != 403 {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
	if a := get(t, api, everybody+"&name=x"); a.Code != 400 {
		t.Errorf("with another condition: %d", a.Code)
	}
}
