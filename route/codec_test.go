package route

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// single stands for YAML: JSON with ' for ".
func single(body []byte) ([]byte, error) {
	if bytes.Contains(body, []byte{'"'}) {
		return nil, errors.New("a double quote")
	}
	return bytes.ReplaceAll(body, []byte("'"), []byte{'"'}), nil
}

// A body must not stay in the pool, whether the body is longer or shorter than its JSON.
func TestNothingOfATranscodedBodyIsLeftInThePool(t *testing.T) {
	for _, doc := range []string{"1", strings.Repeat(" ", 99) + "1"} {
		var s wire.Scratch
		s.Body = append(s.Body, "a secret"...)
		was := s.Body[:8]
		p := must(shape.Compile(reflect.TypeFor[struct {
			N int `body:"json"`
		}](), "/", ownTypes))
		c := &core{plan: p, binder: wire.Binder{Plan: p, Limits: wire.Limits{Depth: defaults.Depth}}}
		c.bindTranscoded(&s, func([]byte) ([]byte, error) { return []byte(doc), nil }, reflect.New(p.Type).Elem())
		s.Clear()
		if string(was) != strings.Repeat("\x00", 8) {
			t.Errorf("%q", was)
		}
	}
}
