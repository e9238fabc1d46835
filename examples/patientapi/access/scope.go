package access

import "strings"

// kind is for whom a scope was given: the first part of it.
type kind string

const (
	user    kind = "user"    // somebody at work
	patient kind = "patient" // a patient, about the own record
	system  kind = "system"  // a program without a person
)

// scope is one as SMART App Launch has it, such as user/Patient.rs or, in its first
// version, user/Patient.read.
type scope struct {
	kind        kind
	resource    string // or *
	permissions string // of the letters cruds, in that order
}

// parseScope reads a scope. It knows none with a condition, such as
// patient/Observation.rs?category=laboratory: leaving the condition out would give more
// than was granted.
func parseScope(text string) (s scope, ok bool) {
	who, what, ok := strings.Cut(text, "/")
	if !ok {
		return scope{}, false
	}
	switch s.kind = kind(who); s.kind {
	case user, patient, system:
	default:
		return scope{}, false
	}
	s.resource, s.permissions, ok = strings.Cut(what, ".")
	if !ok || !named(s.resource) {
		return scope{}, false
	}
	switch s.permissions {
	case "read":
		s.permissions = "rs"
	case "write":
		s.permissions = "cud"
	case "*":
		s.permissions = "cruds"
	}
	return s, inOrder(s.permissions)
}

// ScopeShapes says what scopes look like that can open something here.
const ScopeShapes = "user, patient or system, a slash, Patient, Observation, MedicationRequest, Condition, AllergyIntolerance, Encounter, Coverage, Practitioner or *, a point, and read, * or letters of cruds in that order: user/Patient.rs, patient/*.read, system/*.rs"

// ValidScope reports whether a scope has one of the ScopeShapes. One for a resource that is
// not served here has.
func ValidScope(text string) bool {
	_, ok := parseScope(text)
	return ok
}

// named reports whether s is * or looks like the name of a resource.
func named(s string) bool {
	if s == "*" {
		return true
	}
	for i, c := range []byte(s) {
		if letter := c >= 'A' && c <= 'Z' || i > 0 && c >= 'a' && c <= 'z'; !letter {
			return false
		}
	}
	return s != ""
}

// inOrder reports whether s is one or more of cruds, in that order and without doubles.
func inOrder(s string) bool {
	rest := "cruds"
	for _, c := range []byte(s) {
		at := strings.IndexByte(rest, c)
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return s != ""
}

// letters are the permissions that an action takes.
func letters(a Action) string {
	switch a {
	case Read:
		return "r"
	case Search:
		return "s"
	}
	return "rs" // exports find and read
}

// ScopeName is what scopes call a resource.
func ScopeName(r Resource) string {
	if r == Clinicians {
		return "Practitioner" // as FHIR does
	}
	return string(r)
}

// granted reports whether scopes of that kind, together, are good for a with r.
func granted(scopes []string, k kind, r Resource, a Action) bool {
	missing := letters(a)
	for _, text := range scopes {
		if s, ok := parseScope(text); ok && s.kind == k && s.covers(r) {
			missing = strings.Trim(missing, s.permissions) // at most two letters: each is at an end
		}
	}
	return missing == ""
}

// covers reports whether s is about r.
func (s scope) covers(r Resource) bool { return s.resource == "*" || s.resource == ScopeName(r) }
