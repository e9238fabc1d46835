package route

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

// apiDocument returns the OpenAPI 3.1 document of operations. Operations for all methods, or for a
// method that HTTP does not define, are left out.
func apiDocument(info apiInfo, operations []apiOperation) ([]byte, error) {
	d := document{schemas: newSchemas(), problems: map[string]string{}}
	paths, spelled := object{}, map[string]string{}
	for i := range operations {
		op := &operations[i]
		method, path := strings.ToLower(op.method), pathOf(op.pattern)
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
			return nil, fmt.Errorf("route: %s %s would be described twice: describe each host in a document of its own", op.method, path)
		}
		described, err := d.operation(op)
		if err != nil {
			return nil, fmt.Errorf("route %s %s: describe: %w", op.method, op.pattern, err)
		}
		item[method] = described
	}
	if d.standard {
		d.schemas.named["Problem"] = problemSchema
	}
	head := object{"title": info.Title, "version": info.Version}
	if info.Description != "" {
		head["description"] = info.Description
	}
	doc := object{"openapi": "3.1.0", "info": head, "paths": paths, "components": object{"schemas": d.schemas.named}}
	if len(info.Servers) > 0 {
		var servers []object
		for _, url := range info.Servers {
			servers = append(servers, object{"url": url})
		}
		doc["servers"] = servers
	}
	if info.Edit != nil {
		var err error
		if doc, err = edited(doc, info.Edit); err != nil {
			return nil, err
		}
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	return append(out, '\n'), err
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

// apiInfo is the head of a document.
type apiInfo struct {
	Title       string
	Version     string
	Description string
	Servers     []string // URLs
	Edit        func(doc map[string]any)
}

// apiOperation is one operation of a document.
type apiOperation struct {
	method, pattern string // of http.ServeMux
	id, summary     string
	tags            []string

	plan         *shape.Plan
	allowUnknown bool     // unknown members are allowed
	json         []string // media types of a JSON body
	codecs       []string // further media types

	status   int // of a success
	body     apiBody
	produces string // content type of encoded bodies
	answers  []apiAnswer

	problems []apiProblem
	fails    []int      // statuses with problems of any type
	open     bool       // problems of further statuses are possible
	format   *apiFormat // of problems; nil means application/problem+json

	edits []func(op map[string]any)
}

// apiBody is the body of an answer.
type apiBody struct {
	shape   *shape.Shape // of the encoded value; nil for nothing or bytes
	nulls   bool         // a nil slice may be null
	streams bool         // bytes of any type
}

// apiAnswer adds to a known answer, or is a further one.
type apiAnswer struct {
	status      int
	body        *apiBody // nil means the body of a success, or a problem
	description string   // empty means the status text
	headers     map[string]string
}

// apiProblem is a problem that an operation may answer.
type apiProblem struct {
	status int
	kind   string // URI; empty means about:blank
	text   string
	retry  bool // with Retry-After
}

// apiFormat is the format of problems.
type apiFormat struct {
	mediaType string
	schema    map[string]any
}

type document struct {
	schemas  *schemas
	problems map[string]string // names of components, by status and types
	format   *apiFormat        // of the problems of the current operation
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

func (d *document) operation(op *apiOperation) (object, error) {
	d.schemas.allowUnknown, d.format = op.allowUnknown, op.format
	out := object{"responses": d.responses(op)}
	if op.id != "" {
		out["operationId"] = op.id
	}
	if op.summary != "" {
		out["summary"] = op.summary
	}
	if len(op.tags) > 0 {
		out["tags"] = op.tags
	}
	var parameters []object
	for _, f := range op.plan.Params {
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
		if !op.plan.Optional {
			body["required"] = true
		}
		out["requestBody"] = body
	}
	if len(op.edits) == 0 {
		return out, nil
	}
	return edited(out, op.edits...)
}

// bodies describes the request body in every content type.
func (d *document) bodies(op *apiOperation) object {
	p, content := op.plan, object{}
	if p.Accepts.JSON {
		var schema object
		if p.Whole != nil {
			schema = d.schemas.field(p.Whole)
		} else {
			schema = d.schemas.members(p.Members.Fields, func(f *shape.Field) string { return f.JSON }, d.schemas.field, false)
		}
		for _, mediaType := range op.json {
			content[mediaType] = object{"schema": schema}
		}
		for _, mediaType := range op.codecs {
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
func (d *document) responses(op *apiOperation) object {
	responses := map[int]object{}
	for code, f := range failuresOf(op) {
		responses[code] = d.response(code, f)
	}
	responses[op.status] = d.answered(op, op.status, op.body)
	d.described(op, responses)
	out := object{}
	if op.open {
		out["default"] = d.failure("Problem", nil)
	}
	for code, response := range responses {
		out[strconv.Itoa(code)] = response
	}
	return out
}

// answered describes an answer with the given status that is not a problem.
func (d *document) answered(op *apiOperation, status int, body apiBody) object {
	response := object{"description": cmp.Or(http.StatusText(status), "Answer")}
	switch {
	case status == http.StatusNoContent || status == http.StatusNotModified:
	case body.shape != nil:
		d.schemas.nulls = body.nulls
		mediaType, _, _ := mime.ParseMediaType(op.produces)
		response["content"] = object{mediaType: object{"schema": d.schemas.of(body.shape, true)}}
	case body.streams:
		response["content"] = object{"*/*": object{}}
	}
	return response
}

// described adds the answers of op to responses.
func (d *document) described(op *apiOperation, responses map[int]object) {
	for _, a := range op.answers {
		response := responses[a.status]
		switch {
		case a.body != nil:
			response = d.answered(op, a.status, *a.body)
		case response == nil && a.status < 400:
			response = d.answered(op, a.status, op.body)
		case response == nil:
			response = d.response(a.status, &failures{anything: true})
		}
		responses[a.status] = response
		if a.description != "" {
			response["description"] = a.description
		}
		if len(a.headers) == 0 {
			continue
		}
		headers, _ := response["headers"].(object)
		if headers == nil {
			headers = object{}
			response["headers"] = headers
		}
		for name, text := range a.headers {
			headers[http.CanonicalHeaderKey(name)] = object{"description": text, "schema": object{"type": "string"}}
		}
	}
}
