// Package packed reads the lists of a patient, each of which came from a database as one
// text, its fields and rows set apart by control characters: splitting that copies
// nothing.
package packed

import "strings"

const (
	fieldEnd = "\x1f"
	rowEnd   = "\x1e"
)

// Row is one row of a list, read from the left.
type Row struct{ rest string }

// Field returns the next field; empty after the last.
func (r *Row) Field() string {
	field, rest, _ := strings.Cut(r.rest, fieldEnd)
	r.rest = rest
	return field
}

// Rows yields the rows of text; none if it is empty. A row is only valid until the next.
func Rows(text string) func(yield func(*Row) bool) {
	return func(yield func(*Row) bool) {
		for more := text != ""; more; {
			var r Row
			r.rest, text, more = strings.Cut(text, rowEnd)
			if !yield(&r) {
				return
			}
		}
	}
}
