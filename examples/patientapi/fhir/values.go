package fhir

import (
	"slices"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// How FHIR writes values of search parameters; those of dates are in dates.go.

// patientIDs are the ids of a list that may be those of patients; nil if it is empty.
// Some is false where it names none that may.
func patientIDs(list string) (ids []string, some, ok bool) {
	if list == "" {
		return nil, true, true
	}
	for id := range strings.SplitSeq(list, ",") {
		if _, err := patientapi.ParseID(id); err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, ids != nil, strings.Count(list, ",") < maxIDs
}

// identifierOf reads a token of FHIR: value, system|value or system|. It is not some for
// |value, which asks for an identifier without a system: every one here has a system.
func identifierOf(token string) (id patientapi.Identifier, some, ok bool) {
	system, value, found := cutUnescaped(token, '|')
	if !found {
		system, value = "", token
	}
	if system, ok = single(system); !ok {
		return id, false, false
	}
	if value, ok = single(value); !ok {
		return id, false, false
	}
	register, ours := strings.CutPrefix(system, identifiersOf)
	some = !found || ours && register != ""
	return patientapi.Identifier{System: register, Value: value}, some, true
}

// single returns a value without its escapes; false if it is a list of values.
func single(text string) (string, bool) {
	if _, _, list := cutUnescaped(text, ','); list {
		return "", false
	}
	if !strings.Contains(text, `\`) {
		return text, true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(`\,|$`, text[i+1]) >= 0 {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), true
}

// cutUnescaped is strings.Cut around the first sep without a backslash before it.
func cutUnescaped(text string, sep byte) (before, after string, found bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case sep:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// codesOf reads a list of tokens of FHIR, each code, system|code or system|. It returns
// what reports whether a code of LOINC is one of them.
func codesOf(list string) func(code string) bool {
	return func(code string) bool {
		for token := range strings.SplitSeq(list, ",") {
			system, value, found := strings.Cut(token, "|")
			if !found && token == code || found && system == loinc && (value == "" || value == code) {
				return true
			}
		}
		return false
	}
}
