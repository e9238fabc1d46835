package route

import (
	"encoding/json"
	"fmt"
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
}

// object is a JSON object; encoding/json writes its names in order, so that a
// document is the same every time.
type object = map[string]any

var described = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// OpenAPI returns the document of the routes added so far, as Describe does.
func (m *Mux) OpenAPI(info Info) ([]byte, error) { return Describe(m.cfg, info, m.routes...) }

// Describe returns the OpenAPI 3.1 document of routes, from the plans that bind
// them, for those that another router than Mux serves. Routes for all methods,
// or for one that HTTP itself does not define, are left out: the document has no
// word for them.
func Describe(cfg Config, info Info, routes ...*Route) ([]byte, error) {
	d := document{schemas: newSchemas(), problems: map[string]string{}, cfg: cfg}
	paths, spelled := object{}, map[string]string{}
	for _, r := range routes {
		if r.err != nil {
			return nil, r.err
		}
		method, path := strings.ToLower(r.method), pathOf(r.pattern)
		if !slices.Contains(described, method) {
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
		item[method] = d.operation(r)
	}
	d.schemas.named["Problem"] = problemSchema
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
	out, err := json.MarshalIndent(doc, "", "  ")
	return append(out, '\n'), err
}

// Document serves the OpenAPI document of the routes added so far under pattern,
// such as "GET /openapi.json".
func (m *Mux) Document(pattern string, info Info) error {
	doc, err := m.OpenAPI(info)
	if err != nil {
		return err
	}
	return m.handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	cfg      Config
}

func (d *document) operation(r *Route) object {
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
	if content := d.bodies(r.plan); len(content) > 0 {
		op["requestBody"] = object{"required": true, "content": content}
	}
	return op
}

// bodies describes the request body in every content type.
func (d *document) bodies(p *plan) object {
	content := object{}
	if p.accepts.json {
		var schema object
		if p.whole != nil {
			schema = d.schemas.field(p.whole)
		} else {
			schema = d.schemas.members(p.members.fields, func(f *field) string { return f.json }, d.schemas.field, false)
		}
		content["application/json"] = object{"schema": schema}
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

// responses describes the success and the problems.
func (d *document) responses(r *Route) object {
	status := r.status
	if status == 0 {
		status = r.answer.status
	}
	success := object{"description": http.StatusText(status)}
	switch {
	case status == http.StatusNoContent || status == http.StatusNotModified:
	case r.answer.shape != nil:
		d.schemas.nulls = r.answer.nulls
		success["content"] = object{"application/json": object{"schema": d.schemas.of(r.answer.shape, true)}}
	case r.answer.streams:
		success["content"] = object{"*/*": object{}}
	}
	responses := object{}
	if len(r.failsWith) == 0 {
		responses["default"] = failure("Problem", object{"$ref": problemRef})
	}
	for code, f := range d.failures(r) {
		responses[strconv.Itoa(code)] = d.response(code, f)
	}
	responses[strconv.Itoa(status)] = success
	return responses
}
