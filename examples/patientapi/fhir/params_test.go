package fhir

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// _count=0 asks for the number alone, as _summary=count does. It was refused.
func TestACountOfNothingIsTheNumber(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Optimized)
	for target, kind := range map[string]string{
		"/fhir/Patient?": "", "/fhir/Patient?birthdate=ge1980&": "", "/fhir/Patient?name=a&": "", "/fhir/Patient?_id=P000001,P000002,P000999&": "",
		"/fhir/Observation?patient=P000002&": "", "/fhir/Observation?patient=P000002&code=8867-4&": "", "/fhir/MedicationRequest?patient=P000002&": "",
		"/fhir/Patient?identifier=urn:patientapi:register|&": "", "/fhir/Patient?_id=x&": "", "/fhir/Observation?patient=x&": "",
	} {
		all, _ := following(t, api, get(t, api, target+"_count=7"))
		for _, asked := range []string{"_count=0", "_summary=count", "_count=5&_summary=count", "_count=&_count=0"} {
			a := get(t, api, target+asked)
			if a.Code != 200 || a.Total == nil || *a.Total != len(all) || strings.Contains(a.Body.String(), "entry") || a.link("next") != "" || !strings.Contains(a.link("self"), "_count=0") {
				t.Errorf("%s%s: %d, want %d in all: %.300s %s", target, asked, a.Code, len(all), a.Body, kind)
			}
		}
		if a := get(t, api, target+"_summary=false&_count=7"); a.Code != 200 || len(a.Entry) != min(7, len(all)) {
			t.Errorf("%s_summary=false: %d, %d found", target, a.Code, len(a.Entry))
		}
	}
	by := post(t, api, "/fhir/Patient/_search", "birthdate=ge1980&_count=0")
	if a := get(t, api, by.path(t, "self")); by.Total == nil || a.Total == nil || *a.Total != *by.Total || len(a.Entry) > 0 {
		t.Errorf("by form: %s; by its link: %s", by.Body, a.Body)
	}
	// A patient counts the own record alone.
	for _, target := range []string{"/fhir/Patient?_count=0", "/fhir/Patient?_summary=count&birthdate=ge1900"} {
		if a := get(t, api, target, "Authorization", "Bearer patient"); a.Code != 200 || *a.Total != 1 {
			t.Errorf("%s by a patient: %d %s", target, a.Code, a.Body)
		}
	}
	if a := get(t, api, "/fhir/Patient?_count=0&_id=P000002", "Authorization", "Bearer patient"); a.Code != 403 {
		t.Errorf("of another: %d", a.Code)
	}
}

// A number of one tells of somebody what was asked for, so it is on record as that search is.
// Of many it is about nobody in particular.
func TestACountOfFewIsOnRecordAsTheSearchIs(t *testing.T) {
	store, err := simulated.New(250, 7)
	require.NoError(t, err)
	var p patientapi.Patient
	patientapi.Generator{Seed: 7}.Patient(42, &p)
	log := new(journal)
	api := newAPI(t, store, patterns.Optimized, func(c *Config) {
		c.Front = front.New(front.Config{Verifier: accesstest.Verifier{}, Audit: log, AuditClosed: true})
	})
	one := "identifier=" + p.Identifiers[0].Value + "&birthdate=" + p.BirthDate
	for _, c := range []struct {
		conditions   string
		total, about int
	}{
		{one, 1, 1}, {one + "&_count=0", 1, 1}, {one + "&_summary=count", 1, 1}, {"name=Zzz&_count=0", 0, 0},
		{"_count=0", 250, 0}, {"birthdate=ge1900&_count=0", 250, 0}, {"_count=0&_id=" + p.ID, 1, 1},
	} {
		log.events = nil
		a := post(t, api, "/fhir/Patient/_search", c.conditions)
		want := fmt.Sprintf("doctor-1 search granted 200 POST /fhir/Patient/_search, %d patients", c.about)
		if a.Code != 200 || a.Total == nil || *a.Total != c.total || !slices.Equal(log.events, []string{want}) {
			t.Errorf("%s: %d %.200s\n%v, want %s", c.conditions, a.Code, a.Body, log.events, want)
		}
	}
}

func TestAParameterWithoutAValueIsIgnored(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, empty := range []string{"_count=", "_count", "_id=", "name=", "identifier=", "birthdate=", "_lastUpdated=", "_format=", "_summary=", "_page=", "_pretty=", "name=&name="} {
		if a := get(t, api, "/fhir/Patient?_id=P000003&"+empty); a.Code != 200 || !slices.Equal(a.ids(), []string{"P000003"}) {
			t.Errorf("%s: %d %.200s", empty, a.Code, a.Body)
		}
		if a := post(t, api, "/fhir/Patient/_search", "_id=P000003&"+empty); a.Code != 200 || !slices.Equal(a.ids(), []string{"P000003"}) {
			t.Errorf("%s in a form: %d %.200s", empty, a.Code, a.Body)
		}
	}
	for _, empty := range []string{"_count=", "code=", "_page=", "_summary=", "patient="} {
		if a := get(t, api, "/fhir/Observation?patient=P000002&"+empty); a.Code != 200 || len(a.Entry) == 0 {
			t.Errorf("%s: %d %.200s", empty, a.Code, a.Body)
		}
	}
	for _, empty := range []string{"_since=", "_type=", "start=", "end=", "_count=", "_page="} {
		if a := get(t, api, "/fhir/Patient/P000002/$everything?"+empty); a.Code != 200 || len(a.Entry) < 2 {
			t.Errorf("%s: %d %.200s", empty, a.Code, a.Body)
		}
	}
	if a := get(t, api, "/fhir/Patient/$export?_type=&_since=&_outputFormat=", "Authorization", exportJob, "Prefer", "respond-async"); a.Code != 202 {
		t.Errorf("an export: %d %s", a.Code, a.Body)
	}
}

// Two of the same parameter ask for both. They were refused.
func TestAParameterThatIsRepeatedAsksForBoth(t *testing.T) {
	store := newStore(t)
	api := newAPI(t, store, patterns.Limiter)
	var p patientapi.Patient
	require.NoError(t, store.Patient(t.Context(), "P000005", &p))
	for _, conditions := range []string{
		"_id=P000005,P000006&_id=P000004,P000005", "_id=P000005&_id=P000005", "_id=P000005&_id=P000001,P000005&_id=x,P000005",
		"_id=P000005&name=" + p.Name.Given + "&name=" + p.Name.Family, "_id=P000005&name=" + p.Name.Family[:1] + "&name=" + p.Name.Family,
		"identifier=" + p.Identifiers[0].Value + "&identifier=urn:patientapi:mrn|" + p.Identifiers[0].Value,
		"identifier=" + p.Identifiers[0].Value + "&identifier=urn:patientapi:mrn|&name=" + p.Name.Given,
		"_id=P000005&_count=2&_count=2&_format=json&_format=application/fhir%2Bjson",
	} {
		for name, a := range map[string]*answer{"by URL": get(t, api, "/fhir/Patient?"+conditions), "by form": post(t, api, "/fhir/Patient/_search", conditions)} {
			if a.Code != 200 || !slices.Equal(a.ids(), []string{"P000005"}) {
				t.Errorf("%s %s: %d %.200s", conditions, name, a.Code, a.Body)
			}
		}
		// The link to itself says all of it.
		if a := get(t, api, get(t, api, "/fhir/Patient?"+conditions).path(t, "self")); a.Code != 200 || !slices.Equal(a.ids(), []string{"P000005"}) {
			t.Errorf("%s by a link: %d %s", conditions, a.Code, a.Body)
		}
	}
	heart, _ := following(t, api, get(t, api, "/fhir/Observation?patient=P000002&patient=Patient/P000002&code=8867-4,8480-6&code=8867-4"))
	if alone, _ := following(t, api, get(t, api, "/fhir/Observation?patient=P000002&code=8867-4")); len(alone) == 0 || !slices.Equal(heart, alone) {
		t.Errorf("%v, want %v", heart, alone)
	}
	for _, target := range []string{"/fhir/Patient?_format=json&_format=xml", "/fhir/Patient/P000002?_format=xml&_format=json"} {
		if a := get(t, api, target); a.Code != 406 {
			t.Errorf("%s: %d", target, a.Code)
		}
	}
}

// The format of a search by form may be in the URL. It was refused there.
func TestTheFormatOfAFormMayBeInItsURL(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, kind := range []string{"Patient", "Observation", "MedicationRequest"} {
		form := "patient=P000002"
		if kind == "Patient" {
			form = "_id=P000002"
		}
		for query, want := range map[string]int{"_format=json": 200, "_format=application/fhir%2Bjson&_pretty=true": 200, "_format=xml": 406, "_format=": 200} {
			if a := post(t, api, "/fhir/"+kind+"/_search?"+query, form); a.Code != want || want == 200 && len(a.Entry) == 0 {
				t.Errorf("%s %s: %d %.200s", kind, query, a.Code, a.Body)
			}
		}
		if a := post(t, api, "/fhir/"+kind+"/_search?_format=json", form+"&_format=xml"); a.Code != 406 {
			t.Errorf("%s: one in the URL and another in the form: %d", kind, a.Code)
		}
	}
}

// A moment with the plus sign of its zone as it is in a URL that was not escaped was no date.
func TestAPlusSignThatWasNotEscapedIsOne(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	escaped, _ := following(t, api, get(t, api, "/fhir/Patient?_count=100&_lastUpdated=ge2025-06-01T08:00:00%2B02:00"))
	a := get(t, api, "/fhir/Patient?_count=100&_lastUpdated=ge2025-06-01T08:00:00+02:00")
	plain, _ := following(t, api, a)
	if len(escaped) == 0 || len(escaped) == people || !slices.Equal(escaped, plain) || !strings.Contains(a.link("self"), "%2B02%3A00") {
		t.Errorf("%d escaped, %d not; %s", len(escaped), len(plain), a.link("self"))
	}
	if a := post(t, api, "/fhir/Patient/_search", "_count=100&_lastUpdated=ge2025-06-01T08:00:00+02:00"); !slices.Equal(a.ids(), escaped) {
		t.Errorf("by form: %d %.200s", a.Code, a.Body)
	}
	if a := get(t, api, "/fhir/Patient/P000002/$everything?_since=2025-06-01T08:00:00+02:00"); a.Code != 200 || !strings.Contains(a.link("self"), "_since=2025-06-01T06%3A00%3A00Z") {
		t.Errorf("everything: %d %s", a.Code, a.link("self"))
	}
}

// counted returns how many of each type there are.
func counted(a *answer) map[string]int {
	n := map[string]int{}
	for _, e := range a.Entry {
		n[e.Resource.ResourceType]++
	}
	return n
}

// The CapabilityStatement names the operation of FHIR, so it takes what that takes. All of
// these were refused.
func TestEverythingTakesWhatFHIRSaysItTakes(t *testing.T) {
	store := newStore(t)
	api := newAPI(t, store, patterns.Adaptive)
	const path = "/fhir/Patient/P000002/$everything"
	all := get(t, api, path)
	observations, err := store.Observations(t.Context(), "P000002")
	if err != nil || len(observations) < 3 {
		t.Fatal(err, len(observations))
	}
	var p patientapi.Patient
	require.NoError(t, store.Patient(t.Context(), "P000002", &p))
	at := observations[len(observations)/2]
	day := at.Time.Format("2006-01-02")
	matching := func(keep func(o patientapi.Observation) bool) (n int) {
		for _, o := range observations {
			if keep(o) {
				n++
			}
		}
		return n
	}
	changed := 0
	if !p.Updated.Before(at.Updated) {
		changed = 1
	}
	for _, c := range []struct {
		query      string
		parameters string
		want       map[string]int
	}{
		{"_type=Patient", `{"name":"_type","valueCode":"Patient"}`, map[string]int{"Patient": 1}},
		{"_type=Patient&_type=Observation", `{"name":"_type","valueCode":"Patient"},{"name":"_type","valueCode":"Observation"}`, map[string]int{"Patient": 1, "Observation": len(observations)}},
		{"start=" + day + "&_type=Patient,Observation", `{"name":"start","valueDate":"` + day + `"},{"name":"_type","valueCode":"Patient"},{"name":"_type","valueCode":"Observation"}`,
			map[string]int{"Patient": 1, "Observation": matching(func(o patientapi.Observation) bool { return o.Time.Format("2006-01-02") >= day })}},
		{"end=" + day + "&_type=Observation", `{"name":"end","valueDate":"` + day + `"},{"name":"_type","valueCode":"Observation"}`,
			map[string]int{"Observation": matching(func(o patientapi.Observation) bool { return o.Time.Format("2006-01-02") <= day })}},
		{"_since=" + at.Updated.Format("2006-01-02T15:04:05Z07:00"), `{"name":"_since","valueInstant":"` + at.Updated.Format("2006-01-02T15:04:05Z07:00") + `"}`, map[string]int{
			"Patient": changed, "Observation": matching(func(o patientapi.Observation) bool { return !o.Updated.Before(at.Updated) }), "MedicationRequest": changed * len(p.Medications)}},
		{"", "", counted(all)},
	} {
		for name, zero := range c.want {
			if zero == 0 {
				delete(c.want, name)
			}
		}
		body := `{"resourceType":"Parameters","parameter":[` + c.parameters + `]}`
		for how, a := range map[string]*answer{"by GET": get(t, api, path+"?"+c.query), "by POST": do(t, api, "POST", path, strings.NewReader(body), "Content-Type", mediaType)} {
			if a.Code != 200 || fmt.Sprint(counted(a)) != fmt.Sprint(c.want) {
				t.Errorf("%q %s: %d %v, want %v: %.300s", c.query, how, a.Code, counted(a), c.want, a.Body)
			}
		}
	}
	if a := do(t, api, "POST", path, nil); a.Code != 200 || !slices.Equal(a.ids(), all.ids()) {
		t.Errorf("POST of nothing: %d %.200s", a.Code, a.Body)
	}
	for _, query := range []string{"_type=Condition", "_type=patient", "_since=yesterday", "_since=2999-01-01T00:00:00Z", "start=2000-02-30", "end=x", "_count=0", "_count=-1", "_count=x", "_since=2020&_since=2021", "x=1", "_page=x&_count=1"} {
		if a := get(t, api, path+"?"+query); a.Code != 400 {
			t.Errorf("%s: %d %.200s", query, a.Code, a.Body)
		}
	}
	for body, want := range map[string]int{
		`{"resourceType":"Patient"}`:                                                                                     400,
		`{"resourceType":"Parameters","parameter":[{"name":"_type"}]}`:                                                   400,
		`{"resourceType":"Parameters","parameter":[{"name":"secret","valueCode":"Patient"}]}`:                            400,
		`{"resourceType":"Parameters","parameter":[{"name":"_count","valueInteger":0}]}`:                                 400,
		`{"resourceType":"Parameters","parameter":[{"name":"_page","valueString":"x"}]}`:                                 400,
		`{"resourceType":"Parameters","parameter":[{"name":"_type","valueCode":"Observation","valueString":"Patient"}]}`: 400,
		`[]`: 400, `{`: 400,
	} {
		a := do(t, api, "POST", path, strings.NewReader(body), "Content-Type", mediaType, "Prefer", "handling=lenient")
		if strings.Contains(body, "secret") {
			a = do(t, api, "POST", path, strings.NewReader(body), "Content-Type", mediaType)
		}
		if a.Code != want || strings.Contains(a.Body.String(), "secret") {
			t.Errorf("%s: %d %.200s", body, a.Code, a.Body)
		}
	}
}

// Pages of any size have all of it, each once and in the same order, about one patient and
// about all.
func TestEverythingByPagesIsEverything(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	walk := func(target, token string) (ids []string) {
		a := get(t, api, target, "Authorization", token)
		for {
			if a.Code != 200 || a.Type != "searchset" || len(a.Entry) > 100 {
				t.Fatalf("%s: %d %.200s", target, a.Code, a.Body)
			}
			if again := get(t, api, a.path(t, "self"), "Authorization", token); !slices.Equal(again.ids(), a.ids()) {
				t.Fatalf("%s: the link to itself has another page", target)
			}
			ids = append(ids, a.ids()...)
			if a.link("next") == "" {
				return ids
			}
			a = get(t, api, a.path(t, "next"), "Authorization", token)
		}
	}
	for _, c := range []struct{ path, query, token string }{
		{"/fhir/Patient/P000002/$everything", "", accesstest.Clinician},
		{"/fhir/Patient/P000001/$everything", "_type=Observation&", "Bearer patient"},
		{"/fhir/Patient/P000001/$everything", "end=9999-12-31&", accesstest.Clinician}, // the day after cannot be written
		{"/fhir/Patient/$everything", "", exportJob},
		{"/fhir/Patient/$everything", "_type=MedicationRequest,Patient&start=2024&", exportJob},
	} {
		all := get(t, api, c.path+"?"+c.query, "Authorization", c.token).ids()
		for _, count := range []int{1, 2, 7, 100, 5000} {
			if count < 7 && len(all) > 200 {
				continue
			}
			if got := walk(fmt.Sprintf("%s?%s_count=%d", c.path, c.query, count), c.token); !slices.Equal(got, all) {
				t.Errorf("%s?%s by %d: %d resources, want %d", c.path, c.query, count, len(got), len(all))
			}
		}
	}
	// A link is of one patient, and opens nothing to who may not see that patient.
	next := get(t, api, "/fhir/Patient/P000002/$everything?_count=1").path(t, "next")
	if a := get(t, api, next, "Authorization", "Bearer patient"); a.Code != 403 {
		t.Errorf("by another patient: %d", a.Code)
	}
	if a := get(t, api, strings.Replace(next, "P000002", "P000001", 1)); a.Code != 410 {
		t.Errorf("of another patient: %d", a.Code)
	}
	if a := get(t, api, strings.Replace(next, "P000002/", "", 1), "Authorization", exportJob); a.Code != 410 {
		t.Errorf("of all: %d", a.Code)
	}
}
