package fhir

import (
	"slices"
	"strings"

	"github.com/spillway-go/spillway/route"
)

// narrows returns what reports whether a parameter that is not known would have narrowed the
// answer: a modifier, which FHIR has rejected whatever a client prefers, one of those names in
// other letters, in brackets or in the URL of a search by form, and a condition of FHIR that is not
// supported, such as family. To ignore it would be to answer with more than was asked for.
//
// Where there are no names the answer is one resource, which nothing narrows.
func narrows(names string) func(name string) bool {
	taken := strings.Fields(names)
	return func(name string) bool {
		plain, _, _ := strings.Cut(name, "[")
		plain, _, chained := strings.Cut(plain, ".")
		switch {
		case strings.Contains(name, ":"), slices.ContainsFunc(taken, is(plain)):
			return true
		case len(taken) == 0, slices.ContainsFunc(words.shape, is(plain)):
			return false
		}
		return chained || slices.ContainsFunc(words.names, is(plain))
	}
}

// is reports whether a name is that one, in whatever letters: some write birthDate.
func is(name string) func(other string) bool {
	return func(other string) bool { return strings.EqualFold(name, other) }
}

// notSupported ends the detail of a fault about a parameter; its name may be before it.
const notSupported = " is not supported; /fhir/metadata lists what is, and Prefer: handling=lenient ignores what can be left out"

// The words of package route for what a request may not have.
var unknown = []string{"is not a parameter", "is not a field"}

// words are the names and modifiers of parameters in FHIR R4, as far as clients of
// patients, observations and medication requests know them. A name that a client has made
// up is not repeated: it may be one of a person.
// Those of shape say how an answer is to look, or what is to be beside it: who is in it stays
// the same without them.
var words = struct{ names, modifiers, shape []string }{
	strings.Fields(`_id _lastUpdated _tag _profile _security _text _content _list _has _type _query _filter _source
		_sort _count _include _revinclude _summary _total _elements _contained _containedType _format _pretty _page
		identifier name birthdate patient code active address address-city address-country address-postalcode address-state
		address-use animal-breed animal-species death-date deceased email family gender general-practitioner given language
		link organization phone phonetic telecom subject encounter date category status value-quantity value-concept value-date
		value-string performer specimen device focus based-on part-of has-member derived-from method data-absent-reason
		component-code combo-code combo-value-quantity code-value-quantity authoredon intent intended-performer
		intended-dispenser medication priority requester since until start end`),
	strings.Fields("exact contains missing text not above below in not-in of-type identifier iterate"),
	strings.Fields("_sort _count _include _revinclude _summary _total _elements _contained _containedType _format _pretty"),
}

// named says of what a request may not have which parameter it is, where FHIR knows it.
func named(e *route.InvalidError) route.Problem {
	p := route.Problem{Type: "invalid-request", Detail: "the request has faults; each is listed", Errors: slices.Clone(e.Faults)}
	for i, f := range p.Errors {
		if slices.Contains(unknown, f.Detail) {
			p.Errors[i].Detail = known(f.Parameter) + notSupported
		}
	}
	return p
}

// known returns a parameter, with its modifier, if FHIR knows it: empty otherwise.
func known(parameter string) string {
	name, modifier, modified := strings.Cut(parameter, ":")
	in := func(words []string, word string) bool { return slices.ContainsFunc(words, is(word)) }
	switch {
	case !in(words.names, name):
		return ""
	case modified && !in(words.modifiers, modifier):
		return "a modifier of " + name
	}
	return parameter
}
