package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/routes"
)

func contestants() map[string]func() (http.Handler, error) {
	all := maps.Clone(starts)
	delete(all, routes.Nothing)
	return all
}

func TestAllAnswerGoodRequestsAlike(t *testing.T) {
	for name, start := range contestants() {
		h, err := start()
		if err != nil {
			t.Fatal(name, err)
		}
		for _, scenario := range routes.Scenarios {
			one := newHarness(h, requests[scenario])
			for range 2 { // the second time with reused objects
				status, body := one.send()
				var got, want any
				if err := json.Unmarshal(body, &got); err != nil || status != requests[scenario].Status {
					t.Errorf("%s, %s: %d %s (%v)", name, scenario, status, body, err)
					break
				}
				if err := json.Unmarshal([]byte(expected(scenario)), &want); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s: %s, want %s", name, scenario, body, expected(scenario))
				}
			}
		}
	}
}

func TestAllRefuseBadRequestsAlike(t *testing.T) {
	with := func(from, to string) string { return strings.Replace(jsonBody, from, to, 1) }
	type fault struct {
		request
		names string // what the answer must name
	}
	post := func(kind, body, names string) fault { return fault{request{"POST", target, kind, body, 400}, names} }
	for name, r := range map[string]fault{
		"missing":         post(jsonType, with(`"name":"Augusta Ada King",`, ``), "name"),
		"too short":       post(jsonType, with(`Augusta Ada King`, `A`), "name"),
		"too long":        post(jsonType, with(`Augusta Ada King`, strings.Repeat("a", 81)), "name"),
		"no address":      post(jsonType, with(`ada.king@example.org`, `ada.king`), "email"),
		"not in list":     post(jsonType, with(`"female"`, `"queen"`), "gender"),
		"too old":         post(jsonType, with(`36`, `151`), "age"),
		"zero":            post(jsonType, with(`36`, `0`), "age"),
		"wrong type":      post(jsonType, with(`36`, `"36"`), "age"),
		"pattern":         post(jsonType, with(`+44 20 7946 0958`, `call me`), "phone"),
		"long note":       post(jsonType, with(`"phone"`, `"note":"`+strings.Repeat("x", 1001)+`","phone"`), "note"),
		"too many":        post(jsonType, with(`"vip"`, `"1","2","3","4","5","6","7","8"`), "tags"),
		"unknown member":  post(jsonType, with(`"phone"`, `"telephone"`), "telephone"),
		"no JSON":         post(jsonType, `{"name":`, ""),
		"unknown type":    {request{"POST", target, "application/weird", jsonBody, 415}, ""},
		"no type":         {request{"POST", target, "", jsonBody, 400}, ""},
		"long path value": {request{"POST", "/wards/" + strings.Repeat("7", 21) + "/patients?notify=true", jsonType, jsonBody, 400}, "ward"},
		"query value":     {request{"POST", "/wards/7/patients?notify=perhaps", jsonType, jsonBody, 400}, ""},
		"form: missing":   post(formType, strings.Replace(formBody, "name=Augusta+Ada+King&", "", 1), "name"),
		"form: wrong":     post(formType, strings.Replace(formBody, "age=36", "age=old", 1), ""),
		"form: too old":   post(formType, strings.Replace(formBody, "age=36", "age=151", 1), "age"),
		"short id":        {request{"GET", "/patients/P42", "", "", 400}, "id"},
	} {
		for contestant, start := range contestants() {
			h, err := start()
			if err != nil {
				t.Fatal(contestant, err)
			}
			status, body := newHarness(h, r.request).send()
			if status != r.Status || !strings.Contains(strings.ToLower(string(body)), r.names) {
				t.Errorf("%s, %s: %d %s, want %d that names %q", contestant, name, status, body, r.Status, r.names)
			}
		}
	}
}

// expected is the answer to a good request to a scenario, as JSON has it.
func expected(scenario string) string {
	v := found(newID)
	if scenario != routes.Get {
		p := newPatient{Name: "Augusta Ada King", Email: "ada.king@example.org", Gender: "female", Age: 36,
			Phone: "+44 20 7946 0958", Tags: []string{"vip", "allergy:penicillin"}}
		if scenario == routes.Large {
			p.Note = strings.Repeat("x", 500)
		}
		v = created("7", true, &p)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
