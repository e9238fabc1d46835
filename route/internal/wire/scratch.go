package wire

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spillway-go/spillway/route/internal/shape"
)

const (
	maxKept   = 64 << 10 // bytes of the largest buffer that is kept
	MaxFaults = 32       // faults listed in one answer
	lookahead = 4        // fields that are compared before a lookup in the map
)

// MoreThanOnce is the fault of a name that may occur once.
const MoreThanOnce = "is given more than once"

// Fault is one error in a request. It never repeats a value.
type Fault struct {
	Detail    string
	Pointer   string // into the body: a JSON Pointer as a URI fragment
	Parameter string // or the name of a parameter or form field
	In        string // of the parameter: path, query, header or form
}

// Scratch is the memory that binding one request needs, from its body to its faults. The caller
// pools it, and calls Clear between requests. After Clear a Scratch holds nothing of a request.
type Scratch struct {
	Body         []byte
	present      uint64 // bits of the fields that were sent as text
	Faults       []Fault
	bound        int  // faults noted before validation
	incomplete   bool // the body could not be read to its end
	AllowUnknown bool // unknown names are ignored, if Binder.Ignores agree
	Request      *http.Request
	memory       int64  // bytes that decoding may still allocate
	path         []step // to the current value
	pairs        []pair // pairs of a form
}

// step leads from a value to one of its elements or members.
type step struct {
	name  string
	index int
}

// Clear resets s. It overwrites the contents of the buffers.
func (s *Scratch) Clear() {
	s.Body = cleared(s.Body)
	s.present, s.bound, s.incomplete, s.AllowUnknown, s.Request, s.memory = 0, 0, false, false, nil, 0
	clear(s.Faults)
	s.Faults = s.Faults[:0]
	clear(s.path[:cap(s.path)])
	s.path = s.path[:0]
	s.pairs = s.pairs[:0]
}

func cleared(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	clear(b)
	return b[:0]
}

func (s *Scratch) pushMember(name string) { s.path = append(s.path, step{name: name, index: -1}) }
func (s *Scratch) pushElement(i int)      { s.path = append(s.path, step{index: i}) }
func (s *Scratch) pop()                   { s.path = s.path[:len(s.path)-1] }

// Add appends f, unless the list is full. Validation adds no second fault for a value that could
// not be bound, because the rules would check its zero value.
func (s *Scratch) Add(f Fault) {
	for _, b := range s.Faults[:s.bound] {
		if b.Pointer == f.Pointer && b.Parameter == f.Parameter && b.In == f.In {
			return
		}
	}
	if len(s.Faults) < MaxFaults {
		s.Faults = append(s.Faults, f)
	}
}

// allocate accounts for the memory of n values of type t, for which the body may need only a few
// bytes. It notes a fault if the limit is exceeded.
func (s *Scratch) allocate(n int, t reflect.Type) bool {
	if s.memory -= int64(n) * int64(t.Size()); s.memory < 0 {
		s.faultAtPath("takes too much memory")
	}
	return s.memory >= 0
}

// AddFatal notes why the rest of the body cannot be read.
func (s *Scratch) AddFatal(f Fault) {
	s.incomplete = true
	s.Add(f)
}

// faultAtPath notes a fault of the value at the path.
func (s *Scratch) faultAtPath(detail string) {
	if len(s.Faults) < MaxFaults { // a large body may have many faults, and each pointer is a string
		s.Add(Fault{Pointer: s.pointer(), Detail: detail})
	}
}

// addParam notes a fault of a parameter or a form field.
func (s *Scratch) addParam(f *shape.Field, detail string) {
	name := f.Name
	switch f.Source {
	case shape.FromText:
		s.Add(Fault{Pointer: "#", Detail: detail})
		return
	case shape.FromBody:
		name = f.Form
	}
	s.Add(Fault{Parameter: name, In: f.Source.String(), Detail: detail})
}

// pointer writes the path as a JSON Pointer (RFC 6901) in the form of a URI
// fragment.
func (s *Scratch) pointer() string {
	var b strings.Builder
	b.WriteByte('#')
	for _, step := range s.path {
		b.WriteByte('/')
		if step.index >= 0 {
			b.WriteString(strconv.Itoa(step.index))
			continue
		}
		escape(&b, short(step.name))
	}
	return b.String()
}

// escape writes a reference token: ~ and / in the escapes of RFC 6901, and characters that a URI
// fragment cannot hold in percent-encoding.
func escape(b *strings.Builder, token string) {
	for i := range len(token) {
		switch c := token[i]; {
		case c == '~':
			b.WriteString("~0")
		case c == '/':
			b.WriteString("~1")
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._!$&'()*+,;=:@", c) >= 0:
			b.WriteByte(c)
		default:
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
}

// short truncates a name that a client chose, for use in a fault.
func short(name string) string {
	const most = 64
	if len(name) > most {
		for name = name[:most]; !utf8.ValidString(name) && len(name) > most-utf8.UTFMax; {
			name = name[:len(name)-1]
		}
		name += "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// Reserve makes a buffer for a body of about n bytes, if there is none.
func (s *Scratch) Reserve(n int64) {
	if s.Body == nil {
		s.Body = make([]byte, 0, max(512, min(n, maxKept)))
	}
}

// Grow doubles the body's buffer, and clears the old buffer.
func (s *Scratch) Grow() {
	bigger := make([]byte, len(s.Body), 2*cap(s.Body))
	copy(bigger, s.Body)
	clear(s.Body)
	s.Body = bigger
}
