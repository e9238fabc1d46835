package fhir

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/route"
)

// Exports as jobs, in the shape of FHIR Bulk Data Access: started by $export, asked after
// and cancelled at a status URL, fetched as files. The name of an export is a ticket of
// the caller who has started it. To all others there is no such export, and nothing is
// looked for.

const (
	ndjson       = "application/fhir+ndjson"
	longestRetry = time.Minute // that a client is told to wait between two looks
)

// bulk are the operations.
func (a *API) bulk() front.Operations {
	routes := []*route.Route{
		route.New("GET", "/fhir/$export", a.starter("/$export")).Use(safeHead),
		route.New("GET", "/fhir/Patient/$export", a.starter("/Patient/$export")).Use(safeHead),
		route.New("GET", "/fhir/export/{id}", a.exportStatus),
		route.New("DELETE", "/fhir/export/{id}", a.cancelExport),
	}
	for _, r := range routes {
		r.Limits(route.Limits{Handle: a.cfg.Timeout})
	}
	routes = append(routes, route.New("GET", "/fhir/export/{id}/{file}", a.exportFile).Use(paced, ranged))
	for _, r := range routes {
		a.common(r, "_type _since _outputFormat").Priority(spillway.Low)
	}
	return front.For(access.Patients, access.ExportAll, routes...)
}

// ranged says as an OperationOutcome, like all that goes wrong, that a file does not have the
// range that was asked for. http.ServeContent says it as text.
func ranged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&rangedWriter{ResponseWriter: w}, r) })
}

type rangedWriter struct {
	http.ResponseWriter
	outside bool // there is no such range, and that was said
}

// Unwrap lets http.ResponseController reach the connection.
func (w *rangedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *rangedWriter) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable || w.outside {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.outside = true
	body, _ := json.Marshal(outcomeOf(&route.Problem{Status: status, Title: http.StatusText(status), Detail: "the file does not have the range that was asked for, or the header Range is not one in bytes"}))
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.ResponseWriter.WriteHeader(status)
	_, _ = w.ResponseWriter.Write(body)
}

func (w *rangedWriter) Write(part []byte) (int, error) {
	if w.outside {
		return len(part), nil // the text
	}
	return w.ResponseWriter.Write(part)
}

// safeHead keeps HEAD, which net/http has the handler of GET for, from starting anything.
func safeHead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

var errNoJobs = &route.Problem{Status: http.StatusNotImplemented, Type: "no-exports", Detail: "this service makes no exports by job; GET /fhir/Patient/$everything streams one"}

type startRequest struct {
	asked
	Type         []string `query:"_type" validate:"max=8"`
	Since        []string `query:"_since" validate:"max=8"`
	OutputFormat []string `query:"_outputFormat" validate:"max=8"`

	// The other parameters of Bulk Data Access, so that an answer can name them.
	TypeFilter []string `query:"_typeFilter"`
	Elements   []string `query:"_elements"`
	Patient    []string `query:"patient"`
	Associated []string `query:"includeAssociatedData"`
	Organize   []string `query:"organizeOutputBy"`
	Partial    []string `query:"allowPartialManifests"`
}

// unsupported names the first parameter that is known and not supported. A client that prefers
// leniency has those left out that would not have narrowed the export.
func (req *startRequest) unsupported() string {
	for _, p := range []struct {
		name    string
		values  []string
		narrows bool // what is in the files
	}{
		{"_typeFilter", req.TypeFilter, true}, {"patient", req.Patient, true}, {"_elements", req.Elements, false},
		{"includeAssociatedData", req.Associated, false}, {"organizeOutputBy", req.Organize, false}, {"allowPartialManifests", req.Partial, false},
	} {
		if p.values != nil && (p.narrows || !req.lenient()) {
			return p.name
		}
	}
	return ""
}

// starter returns what starts an export by the operation at that path.
func (a *API) starter(path string) func(context.Context, startRequest) (route.Response[operationOutcome], error) {
	return func(ctx context.Context, req startRequest) (res route.Response[operationOutcome], err error) {
		if a.cfg.Bulk == nil {
			return res, errNoJobs
		}
		r, err := req.read(access.FromContext(ctx))
		if err != nil {
			return res, err
		}
		r.URL = path + req.taken(r)
		ticket := access.NewTicket(access.FromContext(ctx).Principal.Subject)
		if err := a.cfg.Bulk.Start(ctx, ticket, r); err != nil {
			return res, err
		}
		where := baseOf(ctx) + "/export/" + ticket
		res = informed(http.StatusAccepted, "the export was accepted; Content-Location says where to ask after it")
		res.Header = http.Header{"Content-Location": {where}}
		return res, nil
	}
}

func informed(status int, text string) route.Response[operationOutcome] {
	return route.Response[operationOutcome]{Code: status, Body: operationOutcome{
		ResourceType: "OperationOutcome", Issue: []issue{{Severity: "information", Code: "informational", Diagnostics: text}},
	}}
}

// clocksDiffer is how far a replica's clock may be ahead of another's, as with tokens: the
// transactionTime of one is the _since of the next.
const clocksDiffer = 30 * time.Second

// read returns what the request asks for, or what is wrong with it.
func (req *startRequest) read(v *access.Visit) (r export.Request, err error) {
	if err := req.acceptable(); err != nil {
		return r, err
	}
	if !prefers(req.Prefer, "respond-async", "") {
		return r, fault("header", "Prefer", "must be sent as respond-async: an export is a job, and the answer says where to ask after it")
	}
	if name := req.unsupported(); name != "" {
		return r, fault("query", name, "is not supported; an export takes _type, _since and _outputFormat, and Prefer: handling=lenient ignores the rest")
	}
	output, err := only("query", "_outputFormat", req.OutputFormat)
	if err != nil {
		return r, err
	}
	switch strings.Replace(output, " ", "+", 1) { // a plus sign that was not escaped
	case "", ndjson, "application/ndjson", "ndjson":
	default:
		return r, fault("query", "_outputFormat", "must be "+ndjson+", application/ndjson or ndjson")
	}
	r.Started = time.Now().UTC().Truncate(time.Second)
	if r.Since, err = sinceOf("query", req.Since, r.Started); err != nil {
		return r, err
	}
	types, err := typesOf("query", v, req.Type)
	for _, t := range types {
		if v.Shows(t) {
			r.Types = append(r.Types, t)
		} else {
			r.Withheld = append(r.Withheld, t)
		}
	}
	return r, err
}

// sinceOf returns from when on what has changed is asked for; the zero time if that is not
// said.
func sinceOf(in string, values []string, now time.Time) (since time.Time, err error) {
	text, err := only(in, "_since", values)
	if err != nil || text == "" {
		return since, err
	}
	moment, ok := parseInstant(text)
	if !ok {
		return since, fault(in, "_since", "must be a moment with a zone, such as 2026-01-31T08:30:00Z")
	}
	since = moment.from.Truncate(time.Second) // changes are known to the second: one twice is better than none
	if since.Sub(now) > clocksDiffer {
		return since, fault(in, "_since", "must not be in the future")
	}
	return since, nil
}

// typesOf returns the types that are asked for: all of them, also those that the caller may not have,
// where none is named.
func typesOf(in string, v *access.Visit, asked []string) (types []access.Resource, err error) {
	var names []string
	for _, list := range given(asked) {
		names = append(names, strings.Split(list, ",")...)
	}
	for _, name := range names {
		t := access.Resource(name)
		switch {
		case !slices.Contains(export.Types, t):
			return nil, fault(in, "_type", "must be of Patient, Observation and MedicationRequest, separated by commas")
		case !v.Shows(t):
			return nil, access.ErrDenied
		}
	}
	for _, t := range export.Types {
		if len(names) == 0 || slices.Contains(names, string(t)) {
			types = append(types, t)
		}
	}
	return types, nil
}

// taken is the query with what was taken into account, and nothing else that was sent.
func (req *startRequest) taken(r export.Request) string {
	v := url.Values{}
	if len(given(req.Type)) > 0 {
		var names []string
		for _, t := range r.Types {
			names = append(names, string(t))
		}
		v.Set("_type", strings.Join(names, ","))
	}
	if !r.Since.IsZero() {
		v.Set("_since", r.Since.Format(time.RFC3339))
	}
	if len(given(req.OutputFormat)) > 0 {
		v.Set("_outputFormat", ndjson)
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

// holds reports whether the caller has an export of that name; all others get the answer
// for one that does not exist.
func (a *API) holds(ctx context.Context, id string) error {
	if access.FromContext(ctx).Claim(id) != nil || a.cfg.Bulk == nil {
		return export.ErrNotFound
	}
	return nil
}

type exportByID struct {
	asked
	ID string `path:"id"`
}

// manifest says where the files of an export are.
type manifest struct {
	TransactionTime     time.Time      `json:"transactionTime"`
	Request             string         `json:"request"`
	RequiresAccessToken bool           `json:"requiresAccessToken"`
	Output              []manifestFile `json:"output"`
	Error               []manifestFile `json:"error"`
	Extension           *withheld      `json:"extension,omitempty"`
}

// withheld are the types that are left out because a token did not open them: that which the export
// was started with, or that of whoever asks for its manifest.
type withheld struct {
	Types []string `json:"urn:patientapi:withheld"`
}

type manifestFile struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Count int    `json:"count"`
}

// exportStatus answers with the manifest, once there is one.
func (a *API) exportStatus(ctx context.Context, req exportByID) (res route.Response[any], err error) {
	if err := a.holds(ctx, req.ID); err != nil {
		return res, err
	}
	if err := req.acceptable(); err != nil {
		return res, err
	}
	s, err := a.cfg.Bulk.Status(req.ID)
	if err != nil {
		return res, err
	}
	switch s.State {
	case export.Complete:
		m := manifest{s.Started, baseOf(ctx) + s.URL, true, []manifestFile{}, []manifestFile{}, nil}
		hidden := hiddenOf(access.FromContext(ctx), s.Types)
		for _, t := range s.Withheld {
			hidden = append(hidden, string(t))
		}
		if len(hidden) > 0 {
			m.Extension = &withheld{hidden}
		}
		for _, f := range s.Files {
			if !access.FromContext(ctx).Shows(f.Type) {
				continue // how many there are is something about them, too
			}
			m.Output = append(m.Output, manifestFile{string(f.Type), baseOf(ctx) + "/export/" + req.ID + "/" + f.Name, f.Count})
		}
		res.Header = http.Header{"Content-Type": {"application/json"}, "Expires": {s.Expires.UTC().Format(http.TimeFormat)}}
		res.Body = m
	case export.Failed:
		return res, &route.Problem{Status: http.StatusInternalServerError, Type: "export-failed", Detail: "the export has failed: " + s.Reason}
	default:
		progress := fmt.Sprintf("%s: %d patients so far", s.State, s.Patients)
		wait := min(max(time.Since(s.Started)/10, time.Second), longestRetry) // long exports are asked after less often
		outcome := informed(http.StatusAccepted, progress)
		res.Code, res.Body = outcome.Code, outcome.Body
		res.Header = http.Header{"X-Progress": {progress}, "Retry-After": {strconv.Itoa(int((wait + time.Second - 1) / time.Second))}}
	}
	return res, nil
}

func (a *API) cancelExport(ctx context.Context, req exportByID) (res route.Response[operationOutcome], err error) {
	if err := a.holds(ctx, req.ID); err != nil {
		return res, err
	}
	return informed(http.StatusAccepted, "the export is gone"), a.cfg.Bulk.Cancel(req.ID)
}

type exportFileRequest struct {
	ID   string `path:"id"`
	File string `path:"file"`
}

// exportFile sends a file, or the ranges of it that are asked for.
func (a *API) exportFile(ctx context.Context, req exportFileRequest) (f route.File, err error) {
	if err := a.holds(ctx, req.ID); err != nil {
		return f, err
	}
	c, err := a.cfg.Bulk.Open(req.ID, req.File)
	if err != nil {
		return f, err
	}
	visit := access.FromContext(ctx)
	if visit.Shows(c.Type) {
		err = visit.Touch(c.Patients...)
	} else {
		err = export.ErrNotFound // how many there are is something about them, too
	}
	if err != nil {
		_ = c.Close()
		return f, err
	}
	return route.File{ContentType: ndjson, Modified: c.Modified, ETag: strconv.Quote(req.File), Content: c}, nil
}
