package route

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
)

// failures are the problems of one status.
type failures struct {
	types    []string // as in the answers; "" means about:blank
	details  []string
	retry    bool // all problems have Retry-After
	anything bool // there may be further problems, of any type
}

// failures lists problems by status: those that the route itself answers, as mapped by the rules of
// Config.Errors, and those documented by Fails and FailsWith.
func (d *document) failures(r *Route) map[int]*failures {
	errs := append([]error{errInternal}, r.failsWith...)
	if len(r.plan.fields) > 0 || !r.lax || r.refuse != nil {
		errs = append(errs, &InvalidError{})
	}
	if r.plan.body() {
		errs = append(errs, errNoType, errCut, errTooSlow, errTooBig, unsupported(r.plan, r.jsonTypes(d.cfg), d.cfg.Codecs))
	}
	if r.limiter != nil {
		errs = append(errs, &spillway.Rejection{RetryAfter: time.Second})
	}
	if r.limits.or(d.cfg.Limits).Handle > 0 {
		errs = append(errs, context.DeadlineExceeded)
	}
	all := map[int]*failures{}
	of := func(code int) *failures {
		if all[code] == nil {
			all[code] = &failures{retry: true}
		}
		return all[code]
	}
	for _, err := range errs {
		p, _ := d.cfg.Errors.problem(err)
		if p.Status == statusGone {
			continue
		}
		of(p.Status).add(p, d.cfg.problemBase())
	}
	for _, code := range r.fails {
		f := of(code)
		f.anything, f.retry = true, false
	}
	return all
}

func (f *failures) add(p Problem, base string) {
	f.retry = f.retry && p.RetryAfter > 0
	if kind := p.uri(base); !slices.Contains(f.types, kind) {
		f.types = append(f.types, kind)
	}
	if text := cmp.Or(p.Title, p.Detail); text != "" && !slices.Contains(f.details, text) {
		f.details = append(f.details, text)
	}
}

// response describes an answer with status code.
func (d *document) response(code int, f *failures) object {
	var schema object
	if !f.anything && !slices.Contains(f.types, "") && d.cfg.ProblemFormat.Encode == nil {
		schema = d.problem(code, f.types)
	}
	description := http.StatusText(code)
	if !f.anything && len(f.details) > 0 {
		description += ": " + strings.Join(f.details, "; or ")
	}
	response := d.failure(description, schema)
	if f.retry {
		response["headers"] = object{"Retry-After": object{
			"description": "seconds until a retry is worth it", "required": true, "schema": object{"type": "integer", "minimum": 1},
		}}
	}
	return response
}

// problem describes problems of one status and of the given types, and returns a reference. All
// operations with these problems share the description.
func (d *document) problem(code int, types []string) object {
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

// failure describes an answer in the format of problems. schema describes the body more closely if
// it is problem+json; nil means no further description.
func (d *document) failure(description string, schema object) object {
	mediaType, body := problemMedia, object{"schema": object{"$ref": problemRef}}
	switch f := d.cfg.ProblemFormat; {
	case f.Encode != nil:
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
