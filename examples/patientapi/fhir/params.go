package fhir

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/route"
)

// asked is what every request may have. All parameters are lists, since a client may repeat
// each of them, and FHIR has those without a value ignored.
type asked struct {
	Accept []string `header:"Accept"`
	Prefer []string `header:"Prefer"`
	Format []string `query:"_format" validate:"max=8"`
	Pretty []string `query:"_pretty" validate:"max=8"` // of the layout of an answer, which is for programs: ignored
}

func (r asked) lenient() bool { return prefers(r.Prefer, "handling", "lenient") }

// acceptable is as the function of that name.
func (r asked) acceptable() error { return acceptable(r.Format, r.Accept) }

// paging is how much of what a search finds the client wants at once.
type paging struct{ count, summary, page []string }

// given returns the values that are not empty.
func given(values []string) (some []string) {
	for _, value := range values {
		if value != "" {
			some = append(some, value)
		}
	}
	return some
}

// only returns the one value of a parameter that can have one; empty if there is none.
func only(in, parameter string, values []string) (value string, err error) {
	for _, another := range given(values) {
		if value != "" && another != value {
			return "", fault(in, parameter, "is given more than once, and not alike")
		}
		value = another
	}
	return value, nil
}

// texts returns the values that are not empty: together of at most so many bytes, and
// without control characters.
func texts(in, parameter string, values []string, most int) ([]string, error) {
	total := 0
	for _, value := range values {
		total += len(value)
		if !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return unicode.Is(unicode.C, r) }) {
			return nil, fault(in, parameter, "must be without control characters")
		}
	}
	if total > most {
		return nil, fault(in, parameter, "must have at most "+strconv.Itoa(most)+" bytes")
	}
	return given(values), nil
}

// size returns how many resources the page may have, from 0 to maxCount. 0 means that only
// their number is asked for.
func (p paging) size(in string, lenient bool) (count int, err error) {
	text, err := only(in, "_count", p.count)
	if err != nil {
		return 0, err
	}
	count = defaultCount
	if text != "" {
		if count, err = strconv.Atoi(text); err != nil || count < 0 {
			return 0, fault(in, "_count", "must be a whole number, at least 0")
		}
	}
	summary, err := only(in, "_summary", p.summary)
	switch {
	case lenient && (err != nil || summary != "count"), summary == "false", summary == "" && err == nil:
	case err != nil:
		return 0, err
	case summary == "count":
		count = 0
	default:
		return 0, fault(in, "_summary", "must be count or false")
	}
	return min(count, maxCount), nil
}

// token returns the link to a page; empty if there is none. Beside it nothing may be asked for.
func (p paging) token(in string, others ...[]string) (string, error) {
	token, err := only(in, "_page", p.page)
	if err != nil || token == "" {
		return "", err
	}
	for _, values := range append(others, p.count, p.summary) {
		if len(given(values)) > 0 {
			return "", fault(in, "_page", "stands alone: it has the whole search in it")
		}
	}
	return token, nil
}

// identified adds to q that a patient has all those names and identifiers; some is false
// where none can.
func identified(in string, q *patientapi.PatientSearch, names, identifiers []string) (some bool, err error) {
	some = true
	var all []patientapi.Also
	for i := range max(len(names), len(identifiers)) {
		var one patientapi.Also
		if i < len(identifiers) {
			id, registered, ok := identifierOf(identifiers[i])
			if !ok {
				return false, fault(in, "identifier", `must be one value, system|value or system|, with \ before a comma or a bar that is part of it`)
			}
			some = some && registered
			one.Identifier = id
		}
		if i < len(names) {
			name, ok := single(names[i])
			if !ok {
				return false, fault(in, "name", `must be one name, with \ before a comma that is part of it`)
			}
			one.Name = name
		}
		all = append(all, one)
	}
	if len(all) > 0 {
		q.Identifier, q.Name, q.Also = all[0].Identifier, all[0].Name, all[1:]
	}
	return some, nil
}

// fewer returns those of ids that are in others too; nil stands for all.
func fewer(ids, others []string) []string {
	switch {
	case ids == nil:
		return others
	case others == nil:
		return ids
	}
	in := make(map[string]bool, len(others))
	for _, id := range others {
		in[id] = true
	}
	both := []string{}
	for _, id := range ids {
		if in[id] {
			both = append(both, id)
		}
	}
	return both
}

func fault(in, parameter, detail string) error {
	return &route.InvalidError{Faults: []route.Fault{{In: in, Parameter: parameter, Detail: detail}}}
}
