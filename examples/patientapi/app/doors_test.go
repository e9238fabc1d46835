package app

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// scoped is a front.Verifier of tokens that say what they are: a role and its scopes,
// separated by spaces. A patient is the one of that id.
type scoped struct{ patient string }

func (s scoped) Verify(_ context.Context, token string) (access.Principal, error) {
	words := strings.Fields(token)
	if len(words) == 0 {
		return access.Principal{}, errors.New("no role")
	}
	p := access.Principal{Subject: "somebody", Role: access.Role(words[0]), Scopes: words[1:]}
	if p.Role == access.Patient {
		p.Patient = s.patient
	}
	return p, nil
}

// whole returns the first patient about whom everything is known that can be.
func whole(t *testing.T, people int) (p patientapi.Patient) {
	t.Helper()
	for n := 1; n <= people; n++ {
		p.Clear()
		patientapi.Generator{Seed: 1}.Patient(n, &p)
		if len(p.Diagnoses) > 0 && len(p.Medications) > 0 && len(p.Allergies) > 0 && len(p.Visits) > 0 && p.BloodType != "" && p.Insurance.Policy != "" {
			return p
		}
	}
	t.Fatal("nobody has everything")
	return p
}

// marks are texts in an answer that give away something of the patient, by the resource
// of FHIR that it belongs to.
func marks(p *patientapi.Patient) map[string][]string {
	quoted := func(s string) string { return `"` + s + `"` }
	return map[string][]string{
		"Patient":            {p.Phone, p.Address.Street},
		"Observation":        {`"blood_type":` + quoted(p.BloodType), `"resourceType":"Observation"`},
		"MedicationRequest":  {quoted(p.Medications[0].Name), p.Medications[0].Dose},
		"Condition":          {quoted(p.Diagnoses[0].Text), quoted(p.Diagnoses[0].Code)},
		"AllergyIntolerance": {quoted(p.Allergies[0].Substance), quoted(p.Allergies[0].Reaction)},
		"Encounter":          {quoted(p.Visits[0].Reason)},
		"Coverage":           {quoted(p.Insurance.Policy), quoted(p.Insurance.Insurer)},
		"Practitioner":       {p.Physician.Email},
	}
}

// lettersOf are the permissions that an action takes for what a door opens.
var lettersOf = map[string]string{"read": "r", "search": "s", "export": "rs", "export-all": "rs"}

// beside says which resources an answer has beside the one that its pattern opens, and
// the permissions that each of them takes: the same as at its own door.
func beside(pattern string) (resources []string, letters string) {
	switch {
	case strings.Contains(pattern, "/api/v1/patients"):
		return []string{"AllergyIntolerance", "Practitioner", "Condition", "Coverage", "Encounter", "MedicationRequest", "Observation"}, "s"
	case strings.HasSuffix(pattern, "$everything"):
		return []string{"Observation", "MedicationRequest"}, "rs"
	}
	return nil, ""
}

// grants are sets of scopes: the permissions by the resource.
func grants() (all []map[string]string) {
	parts, _ := beside("/api/v1/patients")
	for _, base := range []string{"", "r", "s", "rs"} {
		all = append(all, map[string]string{"Patient": base})
		for _, part := range parts {
			for _, letters := range []string{"r", "s", "rs"} {
				all = append(all, map[string]string{"Patient": base, part: letters})
			}
		}
	}
	return append(all, map[string]string{"*": "r"}, map[string]string{"*": "s"}, map[string]string{"*": "rs"}, map[string]string{"*": "cud"})
}

// opens reports whether the scopes of a grant are good for those permissions.
func opens(grant map[string]string, resource, letters string) bool {
	has := grant[resource] + grant["*"]
	for _, letter := range letters {
		if !strings.ContainsRune(has, letter) {
			return false
		}
	}
	return true
}

// Every route and every set of scopes: what of a patient is in the answer is what the
// scopes open, whichever door it comes out of. A token for the Patient alone got all
// medications, diagnoses, visits and the insurance from a door beside the one that
// refused them.
func TestNoDoorShowsWhatTheScopesDoNotOpen(t *testing.T) {
	const people = 60
	p := whole(t, people)
	h, _, _ := everythingOf(t, people, scoped{p.ID})
	given := marks(&p)
	kinds := map[string]string{"clinician": "user", "export-job": "system", "patient": "patient"}
	shown := map[string]int{}
	for _, e := range endpoints {
		if e.path == "" {
			continue
		}
		method, _, _ := strings.Cut(e.pattern, " ")
		what, action, _ := strings.Cut(e.opens, " ")
		if what == "Clinician" {
			what = "Practitioner"
			e.path = "/api/v1/clinicians?email=" + url.QueryEscape(p.Physician.Email) + "&org=" + url.QueryEscape(p.Physician.Organisation)
		}
		others, letters := beside(e.pattern)
		for role, kind := range kinds {
			may := slices.ContainsFunc(strings.Fields(e.may), func(word string) bool { return word == role || word == role+"+own" })
			for _, grant := range grants() {
				token := role
				for resource, permissions := range grant {
					if permissions != "" {
						token += " " + kind + "/" + resource + "." + permissions
					}
				}
				w := e.ask(h, method, token, p.ID)
				admitted := may && opens(grant, what, lettersOf[action])
				if refused := w.Code == http.StatusForbidden; refused == admitted {
					t.Errorf("%s with %q: %d", e.pattern, token, w.Code)
				}
				if action == "export-all" && !strings.HasSuffix(e.pattern, "everything") {
					continue // it starts a job, or asks after one that does not exist
				}
				var withheld []string
				for resource, texts := range given {
					want := admitted && resource == what
					if slices.Contains(others, resource) {
						want = admitted && opens(grant, resource, letters) && (resource != "Practitioner" || role == "clinician")
						if admitted && !want {
							withheld = append(withheld, resource)
						}
					}
					got := slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(w.Body.Bytes(), []byte(text)) })
					if got != want {
						t.Errorf("%s with %q shows %s: %v, want %v", e.pattern, token, resource, got, want)
					}
					if got {
						shown[resource]++
					}
				}
				slices.Sort(withheld)
				for _, resource := range withheld { // on every page of such a bundle
					if strings.HasSuffix(e.pattern, "$everything") && !bytes.Contains(w.Body.Bytes(), []byte(`"suppressed"`)) {
						t.Errorf("%s with %q does not say that it withholds %s", e.pattern, token, resource)
					}
				}
				if said := w.Header().Get("Withheld"); strings.HasPrefix(e.path, "/api/") && said != strings.Join(withheld, ", ") {
					t.Errorf("%s with %q says that it withholds %q, want %q", e.pattern, token, said, withheld)
				}
			}
		}
	}
	for resource := range given {
		if shown[resource] == 0 {
			t.Errorf("no door shows %s: the marks of this test are wrong", resource)
		}
	}
}
