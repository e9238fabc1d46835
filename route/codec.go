package route

import (
	"reflect"

	"github.com/spillway-go/spillway/route/internal/stdjson"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// A Codec decodes bodies of one content type into the members that json tags name, or into a
// body:"json" field. A Codec must not keep data, which is reused. It must itself refuse unknown
// members, excessive depth and duplicates.
type Codec interface {
	MediaType() string // such as "application/yaml"
	Decode(data []byte, v any) error
}

// Transcoded returns a Codec for a content type that can be rewritten as JSON. The rewritten body
// is bound like a JSON body, so toJSON need not know the request type. Unknown or duplicate
// members, excessive depth and wrong values are refused with a pointer to each fault, and absent is
// distinguished from zero. toJSON must not keep body, and must bound the size of its result. The
// result is used before the handler runs.
func Transcoded(mediaType string, toJSON func(body []byte) ([]byte, error)) Codec {
	return transcoder{mediaType, toJSON}
}

type transcoder struct {
	mediaType string
	toJSON    func([]byte) ([]byte, error)
}

func (t transcoder) MediaType() string { return t.mediaType }

// Decode implements Codec. Routes do not call Decode; they bind the JSON themselves.
func (t transcoder) Decode(data []byte, v any) error {
	doc, err := t.toJSON(data)
	if err != nil {
		return err
	}
	return stdjson.Unmarshal(doc, v)
}

func (c *core) bindTranscoded(s *wire.Scratch, t transcoder, v reflect.Value) {
	doc, err := t.toJSON(s.Body)
	if err != nil {
		s.AddFatal(wire.Fault{Pointer: "#", Detail: "cannot be decoded"})
		return
	}
	clear(s.Body)
	s.Body = append(s.Body[:0], doc...)
	c.binder.JSON(s, v)
}
