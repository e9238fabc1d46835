package routegin

import (
	"errors"
	"fmt"
	"strings"
)

// translate turns a path of gin into a pattern of package route, and returns the name of its
// *parameter. Errors that gin itself reports are left to gin.
func translate(path string) (pattern, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '{', '}':
			return "", "", errors.New("a path with braces cannot be described")
		case '\\': // gin's escape before a literal colon
		case ':', '*':
			if c == ':' && i > 0 && path[i-1] == '\\' {
				b.WriteByte(c)
				continue
			}
			name, _, _ := strings.Cut(path[i+1:], "/")
			if !named(name) {
				return "", "", fmt.Errorf("parameter %c%s: a name has letters, digits, _ and -", c, name)
			}
			i += len(name)
			b.WriteString("{" + name)
			if c == '*' {
				rest = name
				b.WriteString("...")
			}
			b.WriteByte('}')
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), rest, nil
}

func named(s string) bool {
	for _, c := range s {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}
