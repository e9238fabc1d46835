// Package routeyaml is an example of a codec for typed routes (route.Config.Codecs), one that accepts YAML bodies. Copy
// the file to use it.
//
//	api := route.NewMux(route.Config{Codecs: map[string]func([]byte) ([]byte, error){routeyaml.MediaType: routeyaml.JSON}})
//
// A body is rewritten as JSON and then bound like a JSON body, with the same plan and the same
// faults. json tags name the members; there are no yaml tags. Unknown or duplicate members,
// excessive depth and wrong values are refused, with a pointer to each fault. Responses are not
// encoded as YAML.
//
// # Cost
//
// Package routeyaml needs a YAML parser, go.yaml.in/yaml. Reading YAML takes time in proportion to its length, but far more
// than reading JSON: give routes that accept YAML a smaller route.Limits.Body.
package routeyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MediaType is the media type of YAML in RFC 9512.
const MediaType = "application/yaml"

const (
	maxDepth  = 1000 // depth of the YAML; far above the usual Limits.Depth, whose fault has a pointer
	maxGrowth = 8    // bytes of JSON for each byte of YAML; the maximum without aliases is 7
)

// JSON rewrites one YAML document as JSON. The document may have the constructs that JSON has too:
// mappings with scalar keys, sequences, strings, numbers, booleans and null. A date becomes a
// string, and so does a !!binary value, in its base64 form. Aliases are followed until the JSON is
// eight times as long as body. Other tags, merge keys, infinity, NaN and further documents are
// errors. So are numbers with a leading zero, which versions of YAML read differently.
func JSON(body []byte) ([]byte, error) {
	in := yaml.NewDecoder(bytes.NewReader(body))
	var doc yaml.Node
	switch err := in.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil // an empty body, as in JSON
	case err != nil:
		return nil, err
	}
	if err := in.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the document")
	}
	w := writer{most: maxGrowth * (len(body) + 1)}
	err := w.node(&doc, 0)
	return w.out, err
}

type writer struct {
	out  []byte
	most int
}

func (w *writer) node(n *yaml.Node, depth int) error {
	switch {
	case len(w.out) > w.most:
		return errors.New("aliases make it too long")
	case depth > maxDepth:
		return errors.New("nested too deeply")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.node(n.Content[0], depth)
	case yaml.AliasNode:
		return w.node(n.Alias, depth+1) // one deeper, so that an alias to its own parent reaches maxDepth
	case yaml.ScalarNode:
		return w.scalar(n)
	case yaml.SequenceNode:
		return w.sequence(n, depth)
	}
	return w.mapping(n, depth)
}

func (w *writer) sequence(n *yaml.Node, depth int) error {
	if n.ShortTag() != "!!seq" {
		return fmt.Errorf("tag %s", n.ShortTag())
	}
	w.out = append(w.out, '[')
	for i, element := range n.Content {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.node(element, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	if n.ShortTag() != "!!map" {
		return fmt.Errorf("tag %s", n.ShortTag())
	}
	w.out = append(w.out, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return errors.New("a key is no scalar")
		}
		if err := w.value(key.Value); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if err := w.node(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *writer) scalar(n *yaml.Node) error {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp", "!!binary":
		return w.value(n.Value)
	case "!!int", "!!float":
		if digits := strings.TrimLeft(n.Value, "+-"); len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
			return errors.New("a number begins with zero")
		}
		fallthrough
	case "!!bool", "!!null":
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		return w.value(v)
	default:
		return fmt.Errorf("tag %s", tag)
	}
}

// value writes v by encoding/json, which refuses NaN and infinity.
func (w *writer) value(v any) error {
	text, err := json.Marshal(v)
	w.out = append(w.out, text...)
	return err
}
