package main

import "strconv"

type text interface{ ~string | ~[]byte }

// framing is the information from the fields that determines where a message ends.
type framing struct {
	minor          byte // HTTP/1.minor
	hosts, lengths int
	length         int64
	close          bool
	fault          *fault
}

func (f *framing) version(proto string) error {
	switch {
	case proto == "HTTP/1.1":
		f.minor = 1
	case proto == "HTTP/1.0":
		f.close = true // keep-alive is ignored
	case len(proto) == len("HTTP/x.y") && proto[:5] == "HTTP/" && digit(proto[5]) && proto[6] == '.' && digit(proto[7]):
		return errVersion
	default:
		return errLine
	}
	return nil
}

// observe reads one field.
func observe[T text](f *framing, name, value T) {
	switch len(name) {
	case 4:
		if foldEqual(name, "host") {
			if f.hosts++; f.hosts > 1 || !validHost(value) {
				f.fault = errHost
			}
		}
	case 6:
		if foldEqual(name, "expect") {
			f.fault = errExpect
		}
	case 10:
		if foldEqual(name, "connection") && hasToken(value, "close") {
			f.close = true
		}
	case 14:
		if foldEqual(name, "content-length") {
			n, err := strconv.ParseInt(string(value), 10, 64)
			if f.lengths++; f.lengths > 1 || err != nil || len(value) == 0 || !digit(value[0]) {
				f.fault = errLength
			}
			f.length = n
		}
	case 17:
		if foldEqual(name, "transfer-encoding") {
			f.fault = errCoding
		}
	}
}

// check judges all fields together.
func (f *framing) check() error {
	switch {
	case f.fault != nil:
		return f.fault
	case f.minor == 1 && f.hosts == 0:
		return errHost
	case f.length > maxBody:
		return errBody
	}
	return nil
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// tokens are the bytes of RFC 9110's tokens, hosts those of its authorities.
var tokens, hosts = table("!#$%&'*+-.^_`|~"), table("-._~!$&'()*+,;=:[]%")

func table(others string) (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	for i := range len(others) {
		t[others[i]] = true
	}
	return t
}

// tokenLen is how many bytes of b from its beginning are a token.
func tokenLen[T text](b T) int {
	for i := range len(b) {
		if !tokens[b[i]] {
			return i
		}
	}
	return len(b)
}

func validHost[T text](b T) bool {
	for i := range len(b) {
		if !hosts[b[i]] {
			return false
		}
	}
	return true
}

func validValue[T text](b T) bool {
	for i := range len(b) {
		if c := b[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// validTarget accepts a path only: the server is no proxy.
func validTarget[T text](b T) bool {
	for i := range len(b) {
		if c := b[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(b) > 0 && b[0] == '/'
}

// canonical gives a field's name the case that http.Header has it in.
func canonical(name []byte) {
	upper := true
	for i, c := range name {
		switch {
		case upper && c >= 'a' && c <= 'z':
			name[i] = c - ('a' - 'A')
		case !upper && c >= 'A' && c <= 'Z':
			name[i] = c + ('a' - 'A')
		}
		upper = c == '-'
	}
}

// foldEqual compares with a name in lower case.
func foldEqual[T text](b T, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range len(lower) {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func space(c byte) bool { return c == ' ' || c == '\t' }

func trim(b []byte) []byte {
	for len(b) > 0 && space(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && space(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// hasToken looks for a word in a list with commas.
func hasToken[T text](list T, lower string) bool {
	for from := 0; from <= len(list); {
		to := from
		for to < len(list) && list[to] != ',' {
			to++
		}
		next := to + 1
		for from < to && space(list[from]) {
			from++
		}
		for to > from && space(list[to-1]) {
			to--
		}
		if foldEqual(list[from:to], lower) {
			return true
		}
		from = next
	}
	return false
}
