package openapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// share moves what the operations of doc repeat into its components, if the document gets shorter by it:
// responses to failures, and schemas of request bodies. Edits have been made before: they see each
// operation whole.
func share(doc object) error {
	components, ok := doc["components"].(object)
	if !ok {
		return nil // an edit has removed it
	}
	failures, bodies := repeated{}, repeated{}
	paths, _ := doc["paths"].(object)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, _ := paths[path].(object)
		for _, method := range methods {
			op, _ := item[method].(object)
			responses, _ := op["responses"].(object)
			for _, status := range slices.Sorted(maps.Keys(responses)) {
				if status >= "400" { // default and 4XX are greater
					failures.add(nameOf(status), place{responses, status})
				}
			}
			body, _ := op["requestBody"].(object)
			content, _ := body["content"].(object)
			id, _ := op["operationId"].(string)
			for _, mediaType := range slices.Sorted(maps.Keys(content)) {
				if media, ok := content[mediaType].(object); ok && media["schema"] != nil {
					bodies.add(nameOfBody(id), place{media, "schema"})
				}
			}
		}
	}
	taken := object{} // generators of code give schemas and responses names in one space
	for _, section := range []string{"schemas", "responses"} {
		names, _ := components[section].(object)
		maps.Copy(taken, names)
	}
	if err := bodies.move(components, "schemas", taken); err != nil {
		return err
	}
	return failures.move(components, "responses", taken)
}

// place is a member of an object.
type place struct {
	in   object
	name string
}

// repeated lists places by the name that a component for their values would have.
type repeated struct {
	names  []string // as they were added
	places []place
}

func (r *repeated) add(name string, p place) {
	r.names, r.places = append(r.names, name), append(r.places, p)
}

// move moves equal values into a section of components, under names that are not taken.
func (r *repeated) move(components object, section string, taken object) error {
	equal, first := map[string][]place{}, []string(nil)
	name := map[string]string{}
	for i, p := range r.places {
		value, err := json.Marshal(p.in[p.name])
		if err != nil {
			return err
		}
		text := string(value)
		if equal[text] == nil {
			first, name[text] = append(first, text), r.names[i]
		}
		equal[text] = append(equal[text], p)
	}
	target, ok := components[section].(object)
	if !ok {
		target = object{}
	}
	used := numbers{}
	for _, text := range first {
		free := used.unused(taken, name[text])
		ref, n := "#/components/"+section+"/"+free, len(equal[text])
		if n < 2 || (n-1)*len(text) <= n*len(`{"$ref":""}`+ref)+len(`"":,`+free) {
			continue
		}
		target[free], taken[free] = equal[text][0].in[equal[text][0].name], true
		for _, p := range equal[text] {
			p.in[p.name] = object{"$ref": ref}
		}
	}
	if len(target) > 0 {
		components[section] = target
	}
	return nil
}

// nameOfBody returns the name of a component for the request body of an operation, such as
// CreatePatientBody.
func nameOfBody(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, id)
	if name == "" {
		return "RequestBody"
	}
	return strings.ToUpper(name[:1]) + name[1:] + "Body"
}

// nameOf returns the name of a component for responses with the given status, such as NotFound.
func nameOf(status string) string {
	if status == "default" {
		return "OtherProblem"
	}
	code, _ := strconv.Atoi(status)
	text := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, http.StatusText(code))
	if text == "" {
		return "Status" + status
	}
	return text
}

// numbers has the last number that was appended to each name of a component.
type numbers map[string]int

// unused returns name, with a number appended if name is taken.
func (n numbers) unused(taken object, name string) string {
	first := name
	for {
		if _, found := taken[name]; !found {
			return name
		}
		n[first] = max(n[first], 1) + 1
		name = first + strconv.Itoa(n[first])
	}
}
