package route

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Config holds the settings that the routes of a Mux, or of a Group, share. The zero Config works.
type Config struct {
	// Errors maps the errors of handlers to problems; the first rule that matches wins. See
	// [Errors] for the mapping of errors without a rule.
	Errors Errors

	// Codecs accept bodies of content types that this package does not know, such as YAML. The key is
	// the media type, and the function rewrites a body as JSON. The result is bound like a JSON body, so
	// the function need not know the request type: unknown or duplicate members, excessive depth and
	// wrong values are refused with a pointer to each fault, and absent is distinguished from zero. The
	// function must not keep the body, and must bound the size of its result. The result is used before
	// the handler runs.
	Codecs map[string]func(body []byte) ([]byte, error)

	// Limits apply to routes that do not set their own; zero fields have defaults.
	Limits Limits

	// Consumes lists the media types that a JSON body may have, in place of application/json. A
	// route may set its own list.
	Consumes []string

	// Produces is the content type of responses encoded as JSON; empty means application/json. A
	// route may set its own content type, and so may a response (Header of a [Response]).
	Produces string

	// ProblemBase is the prefix of problem types that are not URIs. Empty means
	// "urn:spillway:problem:".
	ProblemBase string

	// ProblemFormat writes the bodies of problems. The zero value writes
	// application/problem+json.
	ProblemFormat ProblemFormat

	// Report receives the errors that clients do not see. These are errors that no rule maps, which
	// are answered with a bare 500; responses and problems that could not be encoded; and every
	// error of a Stream that has begun, unless its client has left. Nil drops the errors.
	Report func(ctx context.Context, pattern string, err error)

	// PathValue returns the value of a wildcard of the pattern, for a router other than
	// http.ServeMux that does not keep the values in the request. Nil means r.PathValue.
	PathValue func(r *http.Request, name string) string

	// OnProblem is called before a problem is written, with the error behind the problem. It may
	// count, log, and add headers or members to the answer. It may change p, which is a copy. It is
	// also called for clients that have left (status 499). Nil does nothing.
	OnProblem func(w http.ResponseWriter, r *http.Request, p *Problem, err error)

	// Observe is called after each answer of a route, and of the Mux itself: its redirects, 404,
	// 405 and Mux.Problem. It gets the request that the route got, with all values that middleware
	// put into the context. It runs in the goroutine of the request, before middleware continues.
	// After a panic of the handler it runs before the panic continues. Answers of middleware and
	// plain handlers are not observed. Nil costs nothing.
	Observe func(r *http.Request, o Outcome)

	// Discreet leaves the names of unknown members and parameters out of faults, because clients
	// choose these names.
	Discreet bool

	// Untimed leaves out Server-Timing, which tells clients how long decoding, waiting and handling
	// took. Server-Timing costs three clock reads, or four with a Limiter.
	Untimed bool
}

// copied returns a copy of c whose slices and map can be added to without a change to c.
func (c *Config) copied() Config {
	own := *c
	own.Errors, own.Codecs, own.Consumes = slices.Clip(c.Errors), maps.Clone(c.Codecs), slices.Clip(c.Consumes)
	return own
}

// check reports settings that make no sense for any route.
func (c *Config) check() error {
	var errs []error
	wrong := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("route: Config.%s: %w", field, err))
		}
	}
	for _, mediaType := range c.Consumes {
		wrong("Consumes", c.consumable(mediaType))
	}
	for mediaType, toJSON := range c.Codecs {
		if toJSON == nil {
			wrong("Codecs", fmt.Errorf("the function for %q is nil", mediaType))
		}
	}
	if c.Produces != "" {
		wrong("Produces", producible(c.Produces))
	}
	wrong("ProblemFormat", c.ProblemFormat.check())
	wrong("Limits", c.Limits.check())
	return errors.Join(errs...)
}

// consumable reports why a JSON body cannot have the given media type.
func (c *Config) consumable(mediaType string) error {
	plain, params, err := mime.ParseMediaType(mediaType)
	switch {
	case err != nil || len(params) > 0 || plain != mediaType || !strings.Contains(plain, "/") || strings.Contains(plain, "*"):
		return fmt.Errorf("%q is no media type in lower case and without parameters", mediaType)
	case slices.Contains(otherBodies, plain):
		return fmt.Errorf("%s is not for JSON", plain)
	}
	if _, taken := c.Codecs[plain]; taken {
		return fmt.Errorf("%s has a Codec", plain)
	}
	return nil
}

// otherBodies are the media types of bodies that are not JSON.
var otherBodies = []string{"application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "text/xml", "text/plain"}

// producible reports why a response cannot have the given content type.
func producible(contentType string) error {
	plain, _, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.Contains(plain, "/") || strings.Contains(plain, "*") {
		return fmt.Errorf("%q is no content type", contentType)
	}
	return nil
}

func (c *Config) problemBase() string {
	if c.ProblemBase == "" {
		return "urn:spillway:problem:"
	}
	return c.ProblemBase
}
