package patientapi

import (
	"cmp"
	"log/slog"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clinician looks after patients. Logging a Clinician shows nothing about the
// person but the id.
type Clinician struct {
	ID           string `json:"id"`
	Name         Name   `json:"name"`
	Specialty    string `json:"specialty"`
	Email        string `json:"email"`
	Organisation string `json:"organisation"`
}

// Mailboxes returns the addresses at which the clinician is reached: the own one,
// and the one shared by all of that specialty in the organisation.
func (c Clinician) Mailboxes() []string {
	_, domain, _ := strings.Cut(c.Email, "@")
	return []string{lower(c.Email), lower(strings.ReplaceAll(c.Specialty, " ", "-") + "@" + domain)}
}

// LogValue hides the person from logs.
func (c Clinician) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String hides the person from everything that formats the clinician.
func (c Clinician) String() string { return "clinician " + c.ID + " (redacted)" }

// GoString hides the person from everything that formats the clinician.
func (c Clinician) GoString() string { return c.String() }

// ClinicianQuery asks for the clinicians of an organisation who are reached at an
// e-mail address. NewClinicianQuery makes it normal, so that equal questions are
// equal values.
type ClinicianQuery struct{ Email, Organisation string }

const (
	maxEmail        = 254 // of RFC 5321, section 4.5.3.1.3, without the angle brackets
	maxOrganisation = 200 // characters
)

// NewClinicianQuery returns the question, or a *FieldError: white space around
// is cut, and the case of A to Z ignored.
func NewClinicianQuery(email, organisation string) (ClinicianQuery, error) {
	q := ClinicianQuery{lower(strings.TrimSpace(email)), lower(strings.TrimSpace(organisation))}
	if !saneEmail(q.Email) {
		return ClinicianQuery{}, &FieldError{"email", "one address, such as someone@org01.example"}
	}
	if q.Organisation == "" || utf8.RuneCountInString(q.Organisation) > maxOrganisation || !utf8.ValidString(q.Organisation) ||
		strings.ContainsFunc(q.Organisation, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ClinicianQuery{}, &FieldError{"org", "the name of an organisation in at most 200 characters, such as Weir Road Surgery"}
	}
	return q, nil
}

// saneEmail reports whether s is an address and nothing but an address. Those
// in other alphabets or in quotation marks belong to nobody here.
func saneEmail(s string) bool {
	if len(s) > maxEmail || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

// LogValue hides the person asked for from logs.
func (ClinicianQuery) LogValue() slog.Value { return slog.StringValue(redactedQuery) }

// String hides the person asked for from everything that formats the query.
func (ClinicianQuery) String() string { return redactedQuery }

// GoString hides the person asked for from everything that formats the query.
func (ClinicianQuery) GoString() string { return redactedQuery }

const redactedQuery = "clinician query (redacted)"

// FieldError reports input that cannot be right, by the name of its field and
// without repeating it.
type FieldError struct {
	Field string
	Want  string
}

func (e *FieldError) Error() string { return "patientapi: " + e.Field + ": want " + e.Want }

// ClinicianAnswer is the answer to a ClinicianQuery.
type ClinicianAnswer struct {
	Clinicians []Clinician `json:"clinicians"`
	// Partial names the sources that did not answer; empty when all did.
	Partial []string `json:"partial"`
}

// LogValue hides the people from logs and says how many there are.
func (a ClinicianAnswer) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("clinicians", len(a.Clinicians)), slog.Any("partial", a.Partial))
}

// MergeClinicians returns everybody in either list once, by id. Whom both know is
// as the first one says.
func MergeClinicians(first, second []Clinician) []Clinician {
	all := append(append(make([]Clinician, 0, len(first)+len(second)), first...), second...)
	slices.SortStableFunc(all, func(a, b Clinician) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b Clinician) bool { return a.ID == b.ID })
}
