package specimen

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
)

// unsupported is a content type that nothing decodes.
type unsupported string

func (u unsupported) Error() string { return "unsupported content type " + string(u) }

var errNoType = errors.New("missing content type")

// bind fills req from path, query and body, the later over the earlier. gin
// checks it after the last of them.
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
	if g.Request.Body == nil || g.Request.ContentLength == 0 {
		return binding.Validator.ValidateStruct(req)
	}
	b, err := bodyBinding(g.ContentType())
	if err != nil {
		return err
	}
	return g.ShouldBindWith(req, b)
}

func bodyBinding(contentType string) (binding.Binding, error) {
	switch contentType {
	case "":
		return nil, errNoType
	case binding.MIMEJSON:
		return binding.JSON, nil
	case binding.MIMEXML, binding.MIMEXML2:
		return binding.XML, nil
	case binding.MIMEPOSTForm:
		return binding.FormPost, nil
	case binding.MIMEMultipartPOSTForm:
		return binding.FormMultipart, nil
	case binding.MIMEPlain:
		return binding.Plain, nil
	case binding.MIMEYAML, binding.MIMEYAML2:
		return binding.YAML, nil
	}
	return nil, unsupported(contentType)
}

// statusOf is the status of a request that could not be bound, or whose handler failed.
func statusOf(err error) int {
	if _, ok := errors.AsType[unsupported](err); ok {
		return http.StatusUnsupportedMediaType
	}
	return http.StatusBadRequest
}
