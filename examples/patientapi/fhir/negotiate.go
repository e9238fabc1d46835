package fhir

import (
	"context"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/route"
)

// mediaTypes are those that the answers may pass for.
var mediaTypes = []string{mediaType, "application/json", "text/json"}

const fhirVersion = "4.0" // as a parameter of a media type

var errFormat = &route.Problem{Status: http.StatusNotAcceptable, Type: "not-acceptable", Detail: "answers are " + mediaType + " of version 4.0: ask for that, or for application/json"}

// acceptable returns errFormat where the client cannot read what is answered. A _format
// goes before Accept, as FHIR has it; where there are several, all must do.
func acceptable(formats, accept []string) error {
	formats = given(formats)
	if len(formats) == 0 {
		return readable("", accept)
	}
	for _, format := range formats {
		if err := readable(format, nil); err != nil {
			return err
		}
	}
	return nil
}

func readable(format string, accept []string) error {
	switch {
	case strings.EqualFold(format, "json"), format == "" && len(accept) == 0:
		return nil
	case format != "":
		accept = []string{strings.Replace(format, "fhir json", "fhir+json", 1)} // a plus sign that was not escaped
	}
	for _, one := range accept {
		media, params, err := mime.ParseMediaType(one)
		if err != nil || params["q"] != "" && strings.Trim(params["q"], "0.") == "" {
			continue
		}
		if version := params["fhirversion"]; version != "" && version != fhirVersion {
			continue
		}
		if slices.Contains(mediaTypes, media) || format == "" && (media == "*/*" || media == "application/*") {
			return nil
		}
	}
	return errFormat
}

// lenient reports whether the client wants what is not supported to be ignored.
func lenient(r *http.Request) bool { return prefers(r.Header["Prefer"], "handling", "lenient") }

// prefers reports whether a Prefer header has that preference. Of one that is there more than once
// the first counts, as RFC 7240 has it.
func prefers(header []string, name, value string) bool {
	for _, line := range header {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			is, has, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.TrimSpace(is), name) {
				return strings.EqualFold(strings.Trim(has, " \t\""), value)
			}
		}
	}
	return false
}

type baseKey struct{}

// based puts into the context under which address the client has reached the API.
func (a *API) based(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := a.cfg.Base
		if base == "" {
			scheme := "http://"
			if r.TLS != nil {
				scheme = "https://"
			}
			base = scheme + r.Host + prefix
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), baseKey{}, base)))
	})
}

// typed lets a body of no type be of the general one, as RFC 9110 allows: no search takes
// that, so the answer is 415 and says what one takes.
func typed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/octet-stream")
		}
		next.ServeHTTP(w, r)
	})
}

// baseOf is what a URL of this API begins with, such as http://localhost:8080/fhir.
func baseOf(ctx context.Context) string {
	base, _ := ctx.Value(baseKey{}).(string)
	return base
}
