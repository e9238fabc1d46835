package route

import (
	"errors"
	"fmt"
	"time"
)

// Limits bound what a request may cost before its handler runs. A zero field
// means the default.
type Limits struct {
	Body   int64         // bytes of a body; 1 MiB. One more is answered 413
	File   int64         // bytes of one uploaded file; as Body. One more is answered 413
	Memory int64         // bytes of the lists, maps and pointers that JSON and XML are decoded into; 32 times Body
	Depth  int           // nesting of JSON and XML; 32
	Fields int           // query parameters, and fields of a form, each; 256
	Parts  int           // parts of a multipart form; 64
	Read   time.Duration // to receive the body, where the connection has read deadlines, also instead of http.Server.ReadTimeout; 10 s. Then 408
	Handle time.Duration // for the whole of a request, by its context; none. Then 504
}

var defaults = Limits{Body: 1 << 20, Depth: 32, Fields: 256, Parts: 64, Read: 10 * time.Second}

// or fills the zero fields of l from other.
func (l Limits) or(other Limits) Limits {
	for _, p := range [][2]*int64{{&l.Body, &other.Body}, {&l.File, &other.File}, {&l.Memory, &other.Memory}, {(*int64)(&l.Read), (*int64)(&other.Read)}, {(*int64)(&l.Handle), (*int64)(&other.Handle)}} {
		if *p[0] == 0 {
			*p[0] = *p[1]
		}
	}
	for _, p := range [][2]*int{{&l.Depth, &other.Depth}, {&l.Fields, &other.Fields}, {&l.Parts, &other.Parts}} {
		if *p[0] == 0 {
			*p[0] = *p[1]
		}
	}
	return l
}

// check reports limits that make no sense.
func (l Limits) check() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Body", l.Body}, {"File", l.File}, {"Memory", l.Memory}, {"Depth", int64(l.Depth)}, {"Fields", int64(l.Fields)},
		{"Parts", int64(l.Parts)}, {"Read", int64(l.Read)}, {"Handle", int64(l.Handle)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("limit %s is negative", f.name))
		}
	}
	return errors.Join(errs...)
}
