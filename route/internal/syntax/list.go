package syntax

import (
	"iter"
	"strings"
)

// ListElements yields the elements of a list on one header line (RFC 9110, section 5.6.1). The list
// may also be split over several lines. A comma in quotes does not separate elements.
func ListElements(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		quoted, from := false, 0
		for i := 0; i <= len(line); i++ {
			switch {
			case i == len(line) || line[i] == ',' && !quoted:
				if one := strings.Trim(line[from:i], " \t"); one != "" && !yield(one) {
					return
				}
				from = i + 1
			case line[i] == '"':
				quoted = !quoted
			case line[i] == '\\' && quoted:
				i = min(i+1, len(line)-1)
			}
		}
	}
}
