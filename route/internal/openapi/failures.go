package openapi

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// failures are the problems of one status.
type failures struct {
	types    []string // as in the answers; "" means about:blank
	details  []string
	retry    bool // all problems have Retry-After
	anything bool // there may be further problems, of any type
}

// failuresOf groups the problems of op by status.
func failuresOf(op *Operation) map[int]*failures {
	all := map[int]*failures{}
	of := func(status int) *failures {
		if all[status] == nil {
			all[status] = &failures{retry: true}
		}
		return all[status]
	}
	for _, p := range op.Problems {
		of(p.Status).add(p)
	}
	return all
}

func (f *failures) add(p Problem) {
	f.retry = f.retry && p.Retry
	if !slices.Contains(f.types, p.Kind) {
		f.types = append(f.types, p.Kind)
	}
	if p.Text != "" && !slices.Contains(f.details, p.Text) {
		f.details = append(f.details, p.Text)
	}
}

// problemsAnswer describes the answer with status code, which is one of several problems.
func (d *document) problemsAnswer(code int, f *failures) object {
	var schema object
	if !f.anything && !slices.Contains(f.types, "") && d.format == nil {
		schema = d.problemsSchema(code, f.types)
	}
	description := http.StatusText(code)
	if !f.anything && len(f.details) > 0 {
		description += ": " + strings.Join(f.details, "; or ")
	}
	response := d.problemAnswer(description, schema)
	if f.retry {
		response["headers"] = object{"Retry-After": object{
			"description": "seconds until a retry is worth it", "required": true, "schema": object{"type": "integer", "minimum": 1},
		}}
	}
	return response
}

// problemsSchema describes problems of one status and of the given types, and returns a reference. All
// operations with these problems share the description.
func (d *document) problemsSchema(code int, types []string) object {
	status := strconv.Itoa(code)
	key := status + " " + strings.Join(types, " ")
	name, known := d.problems[key]
	if !known {
		name = d.schemas.unused("Problem" + status)
		d.problems[key] = name
		d.schemas.named[name] = object{"allOf": []object{{"$ref": problemRef}, {
			"type": "object", "required": []string{"type"},
			"properties": object{"type": object{"type": "string", "enum": types}, "status": object{"type": "integer", "enum": []int{code}}},
		}}}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

const problemRef = "#/components/schemas/Problem"

// problemAnswer describes an answer in the format of problems. schema describes the body more closely if
// it is problem+json; nil means no further description.
func (d *document) problemAnswer(description string, schema object) object {
	mediaType, body := "application/problem+json", object{"schema": object{"$ref": problemRef}}
	switch f := d.format; {
	case f != nil:
		mediaType, _, _ = mime.ParseMediaType(f.MediaType)
		if body = (object{}); f.Schema != nil {
			body["schema"] = f.Schema
		}
	case schema != nil:
		body["schema"] = schema
		fallthrough
	default:
		d.standard = true
	}
	return object{"description": cmp.Or(description, "Problem"), "content": object{mediaType: body}}
}
