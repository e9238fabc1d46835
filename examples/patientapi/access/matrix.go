package access

import (
	"slices"
	"strings"
)

// reach is whose data a rule opens.
type reach int

const (
	own       reach = iota // that of the patient who asks
	everybody              // data of clinicians, which is about no patient, too
)

var (
	records   = []Resource{Patients, Observations, MedicationRequests, Conditions, Allergies, Encounters, Coverages}
	directory = []Resource{Clinicians}
)

// matrix is everything that is allowed. What no line allows is denied. Each role has
// the scopes of one kind only, so that a token made for something else is no good here.
var matrix = []struct {
	role      Role
	scopes    kind
	resources []Resource
	actions   []Action
	reach     reach
}{
	{Clinician, user, records, []Action{Read, Search, Export}, everybody},
	{Clinician, user, directory, []Action{Read, Search}, everybody},
	{Administrator, user, directory, []Action{Read, Search}, everybody},
	{ExportJob, system, records, []Action{Search, Export, ExportAll}, everybody},
	{Patient, patient, records, []Action{Read, Search, Export}, own},
}

// Allowed reports whether p may do a with r where the data is that of the patient of
// that id. An empty id asks whether there is any patient for whom it is allowed, which
// can be decided before a request's body is read. Both must allow it, the role and the
// scopes of the token.
func Allowed(p Principal, r Resource, a Action, patient string) bool {
	for _, rule := range matrix {
		if rule.role != p.Role || !slices.Contains(rule.resources, r) || !slices.Contains(rule.actions, a) {
			continue
		}
		if rule.reach == own && (p.Patient == "" || patient != "" && patient != p.Patient) {
			return false
		}
		return granted(p.Scopes, rule.scopes, r, a)
	}
	return false
}

// onlyOwn reports whether p reaches the own data alone.
func onlyOwn(p Principal) bool {
	for _, rule := range matrix {
		if rule.role == p.Role && rule.reach != own {
			return false
		}
	}
	return true
}

// Roles returns the roles that may do anything.
func Roles() (roles []Role) {
	for _, rule := range matrix {
		if !slices.Contains(roles, rule.role) {
			roles = append(roles, rule.role)
		}
	}
	return roles
}

// Opens reports whether a scope could open anything to a role, alone or beside others.
func Opens(role Role, text string) bool {
	s, ok := parseScope(text)
	helped := func(a Action) bool { return strings.ContainsAny(s.permissions, letters(a)) }
	for _, rule := range matrix {
		if ok && rule.role == role && rule.scopes == s.kind && slices.ContainsFunc(rule.resources, s.covers) && slices.ContainsFunc(rule.actions, helped) {
			return true
		}
	}
	return false
}

// Scopes returns scopes that are good for all that a role may do; none for a role that
// may do nothing.
func Scopes(role Role) []string {
	for _, rule := range matrix {
		if rule.role == role {
			return []string{string(rule.scopes) + "/*.rs"}
		}
	}
	return nil
}
