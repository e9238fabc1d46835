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
)

// Info is the head of an OpenAPI document.
type Info struct {
	Title       string
	Version     string
	Description string
	Servers     []string // URLs

	// Edit changes the document after its generation: security schemes, tags, and any other member.
	// The values have the types of encoding/json; numbers are json.Number.
	Edit func(doc map[string]any)
}

// object is a JSON object. encoding/json sorts its names, so that a document is always the same.
type object = map[string]any

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// OpenAPI returns the document of the routes added so far. See [Describe].
func (m *Mux) OpenAPI(info Info) ([]byte, error) { return Describe(m.root.cfg, info, m.routes...) }

// Describe returns the OpenAPI 3.1 document of routes, from the plans that bind them. It is for
// routes that another router than Mux serves; cfg is the Config of their Handlers. Routes for all
// methods, or for a method that HTTP does not define, are left out, because OpenAPI cannot express
// them.
func Describe(cfg Config, info Info, routes ...*Route) ([]byte, error) {
	d := document{schemas: newSchemas(), problems: map[string]string{}}
	paths, spelled := object{}, map[string]string{}
	for _, r := range routes {
		if r.err != nil {
			return nil, r.err
		}
		if d.cfg = r.cfg; d.cfg == nil {
			d.cfg = &cfg
		}
		method, path := strings.ToLower(r.method), pathOf(r.pattern)
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
			return nil, fmt.Errorf("route: %s %s would be described twice: describe each host in a document of its own", r.method, path)
		}
		op, err := d.operation(r)
		if err != nil {
			return nil, fmt.Errorf("route %s: describe: %w", r.Pattern(), err)
		}
		item[method] = op
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

// Document serves the OpenAPI document of the routes added so far. A pattern is, for example, "GET
// /openapi.json".
func (m *Mux) Document(pattern string, info Info) error {
	doc, err := m.OpenAPI(info)
	if err != nil {
		return err
	}
	return m.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc)
	}))
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

type document struct {
	schemas  *schemas
	problems map[string]string // names of components, by status and types
	cfg      *Config           // of the current route
	standard bool              // some route answers with problem+json
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

func (d *document) operation(r *Route) (object, error) {
	d.schemas.lax = r.lax
	op := object{"responses": d.responses(r)}
	if r.name != "" {
		op["operationId"] = r.name
	}
	if r.summary != "" {
		op["summary"] = r.summary
	}
	if len(r.tags) > 0 {
		op["tags"] = r.tags
	}
	var parameters []object
	for _, f := range r.plan.params {
		p := object{"name": f.name, "in": sourceNames[f.source], "schema": d.schemas.text(f)}
		if f.required {
			p["required"] = true
		}
		if f.doc != "" {
			p["description"] = f.doc
		}
		parameters = append(parameters, p)
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if content := d.bodies(r); len(content) > 0 {
		body := object{"content": content}
		if !r.plan.optional {
			body["required"] = true
		}
		op["requestBody"] = body
	}
	edits := r.edits
	if d.cfg.Operation != nil {
		edits = append([]func(map[string]any){d.cfg.Operation}, edits...)
	}
	if len(edits) == 0 {
		return op, nil
	}
	return edited(op, edits...)
}

// bodies describes the request body in every content type.
func (d *document) bodies(r *Route) object {
	p, content := r.plan, object{}
	if p.accepts.json {
		var schema object
		if p.whole != nil {
			schema = d.schemas.field(p.whole)
		} else {
			schema = d.schemas.members(p.members.fields, func(f *field) string { return f.json }, d.schemas.field, false)
		}
		for _, mediaType := range r.jsonTypes(d.cfg) {
			content[mediaType] = object{"schema": schema}
		}
		for _, codec := range d.cfg.Codecs {
			content[codec.MediaType()] = object{"schema": schema}
		}
	}
	if p.accepts.form {
		upload := false
		schema := d.schemas.members(p.fields, func(f *field) string { return f.form }, func(f *field) object {
			upload = upload || isUpload(f.shape)
			return d.schemas.text(f)
		}, false)
		content["multipart/form-data"] = object{"schema": schema}
		if !upload {
			content["application/x-www-form-urlencoded"] = object{"schema": schema}
		}
	}
	if p.accepts.xml {
		schema := d.schemas.members(p.members.fields, func(f *field) string { return f.xml }, d.schemas.field, false)
		content["application/xml"], content["text/xml"] = object{"schema": schema}, object{"schema": schema}
	}
	if p.accepts.text {
		content["text/plain"] = object{"schema": d.schemas.text(p.text)}
	}
	return content
}

// responses describes the success, the problems, and the answers that the route documents.
func (d *document) responses(r *Route) object {
	responses := map[int]object{}
	for code, f := range d.failures(r) {
		responses[code] = d.response(code, f)
	}
	responses[r.success()] = d.answered(r, r.success(), r.answer)
	d.described(r, responses)
	out := object{}
	if len(r.failsWith) == 0 {
		out["default"] = d.failure("Problem", nil)
	}
	for code, response := range responses {
		out[strconv.Itoa(code)] = response
	}
	return out
}

// answered describes an answer with the given status that is not a problem.
func (d *document) answered(r *Route, status int, a *answer) object {
	response := object{"description": cmp.Or(http.StatusText(status), "Answer")}
	switch {
	case bodiless(status):
	case a.shape != nil:
		d.schemas.nulls = a.nulls
		mediaType, _, _ := mime.ParseMediaType(cmp.Or(r.produces, d.cfg.Produces, jsonContent[0]))
		response["content"] = object{mediaType: object{"schema": d.schemas.of(a.shape, true)}}
	case a.streams:
		response["content"] = object{"*/*": object{}}
	}
	return response
}
