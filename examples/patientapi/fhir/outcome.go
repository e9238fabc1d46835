package fhir

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/route"
)

// mediaType is that of all answers of this API.
const mediaType = "application/fhir+json"

// outcomes writes problems as FHIR has them. Like the problems they say what is
// expected, and repeat nothing that was sent.
var outcomes = route.ProblemFormat{
	MediaType: mediaType,
	Encode:    func(p *route.Problem) ([]byte, error) { return json.Marshal(outcomeOf(p)) },
	Schema: map[string]any{
		"type": "object", "required": []string{"resourceType", "issue"},
		"properties": map[string]any{"resourceType": map[string]any{"const": "OperationOutcome"}, "issue": map[string]any{"type": "array", "minItems": 1}},
	},
}

type operationOutcome struct {
	ResourceType string  `json:"resourceType"`
	Issue        []issue `json:"issue"`
}

type issue struct {
	Severity    string   `json:"severity"`
	Code        string   `json:"code"`
	Details     *concept `json:"details,omitempty"`
	Diagnostics string   `json:"diagnostics,omitempty"`
	Expression  []string `json:"expression,omitempty"` // http.name is the parameter or header of that name
	Location    []string `json:"location,omitempty"`   // the same, where clients of before look
}

// issueCodes are what FHIR calls the statuses (value set issue-type).
var issueCodes = map[int]string{
	http.StatusBadRequest:            "invalid",
	http.StatusUnauthorized:          "login",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not-found",
	http.StatusMethodNotAllowed:      "not-supported",
	http.StatusNotAcceptable:         "not-supported",
	http.StatusRequestTimeout:        "timeout",
	http.StatusGone:                  "expired",
	http.StatusRequestEntityTooLarge: "too-long",
	http.StatusUnsupportedMediaType:  "not-supported",
	http.StatusTooManyRequests:       "throttled",
	http.StatusNotImplemented:        "not-supported",
	http.StatusBadGateway:            "no-store",
	http.StatusServiceUnavailable:    "throttled",
	http.StatusGatewayTimeout:        "timeout",
}

func outcomeOf(p *route.Problem) operationOutcome {
	code := issueCodes[p.Status]
	switch {
	case strings.HasSuffix(p.Type, ":not-recorded"): // by package front, for want of a storage and not of capacity
		code = "no-store"
	case code == "" && p.Status < http.StatusInternalServerError:
		code = "processing"
	case code == "":
		code = "exception"
	}
	o := operationOutcome{ResourceType: "OperationOutcome"}
	if len(p.Errors) == 0 {
		text := p.Title
		if p.Detail != "" {
			text = p.Detail
		}
		if p.Status == http.StatusUnsupportedMediaType {
			text = "a search by POST is a form in UTF-8: " + text
		}
		o.Issue = []issue{{Severity: "error", Code: code, Details: &concept{Text: p.Title}, Diagnostics: text}}
	}
	for _, f := range p.Errors {
		o.Issue = append(o.Issue, issueOf(f))
	}
	return o
}

func issueOf(f route.Fault) issue {
	i := issue{Severity: "error", Code: "value", Diagnostics: f.Detail}
	name := f.Parameter
	if what, ok := strings.CutSuffix(f.Detail, notSupported); ok {
		i.Code, name = "not-supported", what[strings.LastIndexByte(what, ' ')+1:]
		if what == "" {
			i.Diagnostics = "a parameter" + f.Detail
		}
	} else if name != "" {
		i.Diagnostics = name + " " + f.Detail
	}
	if name != "" {
		i.Expression = []string{"http." + name}
		i.Location = i.Expression
	}
	switch {
	case strings.HasPrefix(f.Detail, "is required") || strings.HasPrefix(f.Detail, "must be sent"):
		i.Code = "required"
	}
	return i
}
