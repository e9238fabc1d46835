package fhir

import "testing"

func TestWhatClientsAccept(t *testing.T) {
	for _, c := range []struct {
		format string
		accept []string
		ok     bool
	}{
		{"", nil, true},
		{"JSON", []string{"application/xml"}, true},
		{"application/fhir json", nil, true}, // a plus sign that was not escaped
		{"application/fhir+json; fhirVersion=5.0", nil, false},
		{"xml", nil, false},
		{"*/*", nil, false},
		{"", []string{"Application/FHIR+JSON;fhirVersion=4.0"}, true},
		{"", []string{"application/fhir+xml", "application/json;q=0.1"}, true},
		{"", []string{"application/fhir+xml", "application/json;q=0.0"}, false},
		{"", []string{"text/html", "*/*;q=0.8"}, true},
		{"", []string{"text/html", "nonsense;;;"}, false},
	} {
		if err := acceptable([]string{c.format}, c.accept); (err == nil) != c.ok {
			t.Errorf("_format %q, Accept %q: %v", c.format, c.accept, err)
		}
	}
}
