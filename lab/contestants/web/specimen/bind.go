package specimen

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
)

// bindings decode bodies by content type.
var bindings = map[string]binding.Binding{
	binding.MIMEJSON: binding.JSON,
	binding.MIMEXML:  binding.XML, binding.MIMEXML2: binding.XML,
	binding.MIMEPOSTForm: binding.FormPost, binding.MIMEMultipartPOSTForm: binding.FormMultipart,
	binding.MIMEPlain: binding.Plain,
	binding.MIMEYAML:  binding.YAML, binding.MIMEYAML2: binding.YAML,
}

var (
	errNoType    = errors.New("missing content type")
	errOtherType = errors.New("unsupported content type")
)

// bind fills req from path, query and body, the later over the earlier. gin checks it
// after the last of them.
func bind(g *gin.Context, req any) error {
	if len(g.Params) > 0 {
		path := make(map[string][]string, len(g.Params))
		for _, p := range g.Params {
			path[p.Key] = []string{p.Value}
		}
		if err := binding.MapFormWithTag(req, path, "uri"); err != nil {
			return err
		}
	}
	if g.Request.URL.RawQuery != "" {
		if err := binding.MapFormWithTag(req, g.Request.URL.Query(), "query"); err != nil {
			return err
		}
	}
	kind := g.ContentType()
	body, known := bindings[kind]
	switch {
	case g.Request.Body == nil || g.Request.ContentLength == 0:
		return binding.Validator.ValidateStruct(req)
	case kind == "":
		return errNoType
	case !known:
		return errOtherType
	}
	return g.ShouldBindWith(req, body)
}

// statusOf is the status of a request that could not be bound, or whose handler failed.
func statusOf(err error) int {
	if errors.Is(err, errOtherType) {
		return http.StatusUnsupportedMediaType
	}
	return http.StatusBadRequest
}
