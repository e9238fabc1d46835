package route

import (
	"errors"
	"fmt"
	"time"
)

// Limits bound the cost of a request before its handler runs. A zero field means the default.
type Limits struct {
	Body   int64 // bytes of a body; default 1 MiB. Larger: 413
	File   int64 // bytes of one uploaded file; default Body. Larger: 413
	Depth  int   // nesting of JSON and XML; default 32
	Fields int   // query parameters, and separately fields of a form; default 256
	Parts  int   // parts of a multipart form; default 64

	// Read is the time to receive the body; default 10 s. Then 408. Read needs read deadlines on the
	// connection, and replaces http.Server.ReadTimeout.
	Read   time.Duration
	Handle time.Duration // for the whole request, by its context; default none. Then 504

	memory int64 // bytes of the lists, maps and pointers that JSON and XML are decoded into: 32 times Body
}

var defaults = Limits{Body: 1 << 20, Depth: 32, Fields: 256, Parts: 64, Read: 10 * time.Second}

// withDefaults fills the zero fields of l from other.
func (l Limits) withDefaults(other Limits) Limits {
	for _, p := range [][2]*int64{{&l.Body, &other.Body}, {&l.File, &other.File}, {&l.memory, &other.memory}, {(*int64)(&l.Read), (*int64)(&other.Read)}, {(*int64)(&l.Handle), (*int64)(&other.Handle)}} {
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
		{"Body", l.Body}, {"File", l.File}, {"Depth", int64(l.Depth)}, {"Fields", int64(l.Fields)},
		{"Parts", int64(l.Parts)}, {"Read", int64(l.Read)}, {"Handle", int64(l.Handle)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("limit %s is negative", f.name))
		}
	}
	for name, d := range map[string]time.Duration{"Read": l.Read, "Handle": l.Handle} {
		if d > 0 && d < time.Millisecond {
			errs = append(errs, fmt.Errorf("limit %s is %v: the least is 1ms, and a plain number counts nanoseconds (write 2*time.Second)", name, d))
		}
	}
	return errors.Join(errs...)
}
