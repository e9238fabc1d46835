package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFlagsOfFHIRAreCheckedFirst(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	key := strings.Repeat("ab", 32)
	for _, c := range []struct {
		flags FHIRFlags
		ok    bool
	}{
		{FHIRFlags{}, true},
		{FHIRFlags{Base: "https://hospital.example/fhir", PageKeyFile: file(key + "\n")}, true},
		{FHIRFlags{Base: "hospital.example/fhir"}, false},
		{FHIRFlags{Base: "/fhir"}, false},
		{FHIRFlags{Base: "https://user:secret@hospital.example/fhir"}, false},
		{FHIRFlags{Base: "https://hospital.example/fhir?a=secret"}, false},
		{FHIRFlags{PageKeyFile: "/nowhere/key"}, false},
		{FHIRFlags{PageKeyFile: file("")}, false},
		{FHIRFlags{PageKeyFile: file(key[1:])}, false},
		{FHIRFlags{PageKeyFile: file("secret" + key)}, false},
	} {
		got, err := c.flags.check()
		if (err == nil) != c.ok || err != nil && (!errors.Is(err, ErrUsage) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%+v: %x %v", c.flags, got, err)
		}
	}
}

func TestFHIRIsBesideTheOtherAPIAndSharesItsFront(t *testing.T) {
	r := start(t, quick())
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"/fhir/metadata", 200, `"CapabilityStatement"`},
		{"/fhir/Patient/P000001", 200, `"resourceType":"Patient"`},
		{"/fhir/Patient?_count=1", 200, `"fullUrl":"http://` + r.addr + `/fhir/Patient/P000001"`},
		{"/fhir/Patient/P000001/$everything", 200, `"resourceType":"Observation"`},
		{"/fhir/nothing", 404, `"OperationOutcome"`},
		{"/fhir", 404, `"OperationOutcome"`},
		{"/fhirs", 404, `"request_id"`},
		{"/api/v1/patients/P000001", 200, `"blood_type"`},
	} {
		if status, body := r.get(t, c.path); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	if report, err := r.report(t); err != nil || report.Requests.OK != 5 || report.Requests.BadInput != 3 {
		t.Errorf("%+v %v", report.Requests, err)
	}
}
