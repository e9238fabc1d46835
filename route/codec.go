package route

import (
	"maps"
	"reflect"
	"slices"

	"github.com/spillway-go/spillway/route/internal/wire"
)

// codec rewrites a body as JSON. See Config.Codecs.
type codec = func(body []byte) ([]byte, error)

// codecTypes are the media types of Config.Codecs, in order.
func (c *Config) codecTypes() []string { return slices.Sorted(maps.Keys(c.Codecs)) }

func (c *core) bindTranscoded(s *wire.Scratch, toJSON codec, v reflect.Value) {
	doc, err := toJSON(s.Body)
	if err != nil {
		s.AddFatal(wire.Fault{Pointer: "#", Detail: "cannot be decoded"})
		return
	}
	clear(s.Body)
	s.Body = append(s.Body[:0], doc...)
	c.binder.JSON(s, v)
}
