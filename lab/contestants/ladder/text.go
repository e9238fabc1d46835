package main

import "strings"

// keep appends v to a store and returns it there. What is kept remains valid when the
// store grows, until it is reset and reused.
func keep[T text](store *[]byte, v T) []byte {
	from := len(*store)
	*store = append(*store, v...)
	return (*store)[from:len(*store):len(*store)] // appending to it reallocates
}

// get returns the first field of a canonical name; nil if there is none.
func get(all []field, name string) []byte {
	for _, f := range all {
		if string(f.name) == name {
			return f.value
		}
	}
	return nil
}

// set is a set of bytes.
type set [256]bool

// The bytes of RFC 9110's tokens, of its authorities, of values and of targets.
var (
	tokens  = setOf(func(c rune) bool { return alphanumeric(c) || strings.ContainsRune("!#$%&'*+-.^_`|~", c) })
	hosts   = setOf(func(c rune) bool { return alphanumeric(c) || strings.ContainsRune("-._~!$&'()*+,;=:[]%", c) })
	values  = setOf(func(c rune) bool { return c >= ' ' && c != 0x7f || c == '\t' })
	targets = setOf(func(c rune) bool { return c > ' ' && c < 0x7f })
)

func setOf(has func(rune) bool) (s set) {
	for c := range s {
		s[c] = has(rune(c))
	}
	return s
}

func alphanumeric(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// all reports whether the set has every byte.
func all[T text](b T, of *set) bool {
	for i := range len(b) {
		if !of[b[i]] {
			return false
		}
	}
	return true
}

// isPath accepts a path only: the server is no proxy.
func isPath[T text](b T) bool { return len(b) > 0 && b[0] == '/' && all(b, &targets) }

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
