// Package openapi makes an OpenAPI 3.1 document of operations, which are plain values.
package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/route/internal/shape"
)

// object is a JSON object. encoding/json sorts its names, so that a document is always the same.
type object = map[string]any

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// Marshal returns the OpenAPI 3.1 document of operations on one line. Operations for all methods, or for a
// method that HTTP does not define, are left out.
func Marshal(info Info, operations []Operation) ([]byte, error) {
	d := document{schemas: newSchemas(), problems: map[string]string{}}
	paths, spelled := object{}, map[string]string{}
	for i := range operations {
		op := &operations[i]
		method, path := strings.ToLower(op.Method), pathOf(op.Pattern)
		if !slices.Contains(methods, method) {
			continue
		}
		item, ok := paths[path].(object)
		if !ok {
			nameless := parameter.ReplaceAllString(path, "{}")
			if other := spelled[nameless]; other != "" {
				return nil, fmt.Errorf("route: %s and %s are one path to OpenAPI: give their parameters the same names", other, path)
			}
			spelled[nameless] = path
			item = object{}
			paths[path] = item
		}
		if item[method] != nil {
			return nil, fmt.Errorf("route: %s %s would be described twice: describe each host in a document of its own", op.Method, path)
		}
		described, err := d.operation(op)
		if err != nil {
			return nil, fmt.Errorf("route %s %s: describe: %w", op.Method, op.Pattern, err)
		}
		item[method] = described
	}
	if !d.standard {
		delete(d.schemas.named, "Problem")
	}
	head := object{"title": info.Title, "version": info.Version}
	if info.Description != "" {
		head["description"] = info.Description
	}
	doc := object{"openapi": "3.1.0", "info": head, "paths": paths, "components": object{"schemas": d.schemas.named}}
	if info.Edit != nil {
		var err error
		if doc, err = edited(doc, info.Edit); err != nil {
			return nil, err
		}
	}
	if err := share(doc); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	if err := to.Encode(doc); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var (
	wildcard  = regexp.MustCompile(`\{([^{}]+)\.\.\.\}`)
	parameter = regexp.MustCompile(`\{[^{}]+\}`)
)

// pathOf turns a pattern of ServeMux into a path of OpenAPI.
func pathOf(pattern string) string {
	if i := strings.Index(pattern, "/"); i > 0 {
		pattern = pattern[i:] // without the host
	}
	return wildcard.ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "{$1}")
}

// Info is the head of a document.
type Info struct {
	Title       string
	Version     string
	Description string
	Edit        func(doc map[string]any)
}

// Operation is one operation of a document.
type Operation struct {
	Method, Pattern string // of http.ServeMux
	ID, Summary     string
	Tags            []string

	Plan         *shape.Plan
	AllowUnknown bool     // unknown members are allowed
	JSON         []string // media types of a JSON body
	Codecs       []string // further media types

	Status   int // of a success
	Body     Body
	Produces string // content type of encoded bodies
	Answers  []Answer

	Problems []Problem
	Open     bool    // problems of further statuses are possible
	Format   *Format // of problems; nil means application/problem+json

	Edits []func(op map[string]any)
}

// Body is the body of an answer.
type Body struct {
	Shape   *shape.Shape // of the encoded value; nil for nothing or bytes
	Nulls   bool         // a nil slice may be null
	Streams bool         // bytes of any type
}

// Answer adds to a known answer, or is a further one.
type Answer struct {
	Status      int
	Body        *Body  // nil means the body of a success, or a problem
	Description string // empty means the status text
	Headers     map[string]string
}

// Problem is a problem that an operation may answer.
type Problem struct {
	Status int
	Kind   string // the type of the problem, a URI; empty means about:blank
	Text   string
	Retry  bool // with Retry-After
}

// Format is the format of problems.
type Format struct {
	MediaType string
	Schema    map[string]any
}

type document struct {
	schemas  *schemas
	problems map[string]string // names of components, by status and types
	format   *Format           // of the problems of the current operation
	standard bool              // some operation answers with problem+json
}

// edited returns v after edits. The edits get v decoded by encoding/json.
func edited(v object, edits ...func(map[string]any)) (object, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out, in := object{}, json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&out); err != nil {
		return nil, err
	}
	for _, edit := range edits {
		edit(out)
	}
	return out, nil
}

func (d *document) operation(op *Operation) (object, error) {
	d.schemas.allowUnknown, d.format = op.AllowUnknown, op.Format
	out := object{"responses": d.responses(op)}
	if op.ID != "" {
		out["operationId"] = op.ID
	}
	if op.Summary != "" {
		out["summary"] = op.Summary
	}
	if len(op.Tags) > 0 {
		out["tags"] = op.Tags
	}
	var parameters []object
	for _, f := range op.Plan.Params {
		p := object{"name": f.Name, "in": f.Source.String(), "schema": d.schemas.text(f)}
		if f.Required {
			p["required"] = true
		}
		if f.Doc != "" {
			p["description"] = f.Doc
		}
		parameters = append(parameters, p)
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if content := d.bodies(op); len(content) > 0 {
		body := object{"content": content}
		if !op.Plan.Optional {
			body["required"] = true
		}
		out["requestBody"] = body
	}
	if len(op.Edits) == 0 {
		return out, nil
	}
	return edited(out, op.Edits...)
}

// bodies describes the request body in every content type.
func (d *document) bodies(op *Operation) object {
	p, content := op.Plan, object{}
	if p.Accepts.JSON {
		var schema object
		if p.Whole != nil {
			schema = d.schemas.field(p.Whole)
		} else {
			schema = d.schemas.members(p.Members.Fields, func(f *shape.Field) string { return f.JSON }, d.schemas.field, false)
		}
		for _, mediaType := range op.JSON {
			content[mediaType] = object{"schema": schema}
		}
		for _, mediaType := range op.Codecs {
			content[mediaType] = object{"schema": schema}
		}
	}
	if p.Accepts.Form {
		upload := false
		schema := d.schemas.members(p.Fields, func(f *shape.Field) string { return f.Form }, func(f *shape.Field) object {
			upload = upload || f.Shape.IsUpload()
			return d.schemas.text(f)
		}, false)
		content["multipart/form-data"] = object{"schema": schema}
		if !upload {
			content["application/x-www-form-urlencoded"] = object{"schema": schema}
		}
	}
	if p.Accepts.XML {
		schema := d.schemas.members(p.Members.Fields, func(f *shape.Field) string { return f.XML }, d.schemas.field, false)
		content["application/xml"], content["text/xml"] = object{"schema": schema}, object{"schema": schema}
	}
	if p.Accepts.Text {
		content["text/plain"] = object{"schema": d.schemas.text(p.Text)}
	}
	return content
}

// responses describes the success, the problems, and the answers that the route documents.
func (d *document) responses(op *Operation) object {
	responses := map[int]object{}
	for code, f := range failuresOf(op) {
		responses[code] = d.problemsAnswer(code, f)
	}
	responses[op.Status] = d.answered(op, op.Status, op.Body)
	d.described(op, responses)
	out := object{}
	if op.Open {
		out["default"] = d.problemAnswer("Problem", nil)
	}
	for code, response := range responses {
		out[strconv.Itoa(code)] = response
	}
	return out
}

// answered describes an answer with the given status that is not a problem.
func (d *document) answered(op *Operation, status int, body Body) object {
	response := object{"description": cmp.Or(http.StatusText(status), "Answer")}
	switch {
	case status == http.StatusNoContent || status == http.StatusNotModified:
	case body.Shape != nil:
		d.schemas.nulls = body.Nulls
		mediaType, _, _ := mime.ParseMediaType(op.Produces)
		response["content"] = object{mediaType: object{"schema": d.schemas.of(body.Shape, true)}}
	case body.Streams:
		response["content"] = object{"*/*": object{}}
	}
	return response
}

// described adds the answers of op to responses.
func (d *document) described(op *Operation, responses map[int]object) {
	for _, a := range op.Answers {
		response := responses[a.Status]
		switch {
		case a.Body != nil:
			response = d.answered(op, a.Status, *a.Body)
		case response == nil && a.Status < 400:
			response = d.answered(op, a.Status, op.Body)
		case response == nil:
			response = d.problemsAnswer(a.Status, &failures{anything: true})
		}
		responses[a.Status] = response
		if a.Description != "" {
			response["description"] = a.Description
		}
		if len(a.Headers) == 0 {
			continue
		}
		headers, _ := response["headers"].(object)
		if headers == nil {
			headers = object{}
			response["headers"] = headers
		}
		for name, text := range a.Headers {
			headers[http.CanonicalHeaderKey(name)] = object{"description": text, "schema": object{"type": "string"}}
		}
	}
}
