package route

import "reflect"

// A Codec decodes bodies of one content type into the members that json tags
// name, or into a body:"json" field. It must not keep data, which is reused, and
// must refuse what it does not know itself: unknown members, depth, duplicates.
type Codec interface {
	MediaType() string // such as "application/yaml"
	Decode(data []byte, v any) error
}

// Transcoded is a Codec for a content type that can be rewritten as JSON. Such a
// body is bound as a JSON one is, so that toJSON need not know the type: members
// that are unknown or given twice, depth and values are refused with a pointer
// to each fault, and absent is told from zero. toJSON must not keep body, and
// must bound what it makes of it; its result is used before the handler runs.
func Transcoded(mediaType string, toJSON func(body []byte) ([]byte, error)) Codec {
	return transcoder{mediaType, toJSON}
}

type transcoder struct {
	mediaType string
	toJSON    func([]byte) ([]byte, error)
}

func (t transcoder) MediaType() string { return t.mediaType }

// Decode makes it a Codec. Routes bind the JSON themselves.
func (t transcoder) Decode(data []byte, v any) error {
	doc, err := t.toJSON(data)
	if err != nil {
		return err
	}
	return decodeJSON(doc, v)
}

func (c *core) bindTranscoded(s *scratch, t transcoder, v reflect.Value) {
	doc, err := t.toJSON(s.body)
	if err != nil {
		s.breaks(Fault{Pointer: "#", Detail: "cannot be decoded"})
		return
	}
	clear(s.body)
	s.body = append(s.body[:0], doc...)
	c.bindJSON(s, v)
}
