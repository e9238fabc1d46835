package syntax

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Formats has the check of each format that a rule may name.
var Formats = map[string]func(string) bool{
	"email": isEmail,
	"uuid": func(s string) bool {
		if len(s) != 36 {
			return false
		}
		for i := range len(s) {
			switch hyphen := i == 8 || i == 13 || i == 18 || i == 23; {
			case hyphen && s[i] != '-', !hyphen && !IsHex(s[i]):
				return false
			}
		}
		return true
	},
	"date":      func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
	"date-time": isDateTime,
	"uri":       isURI,
}

// isEmail implements format=email: an RFC 5321 mailbox in ASCII, without quotes, at a domain of two
// labels or more.
func isEmail(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	if len(s) > 254 || local == "" || len(local) > 64 || strings.IndexByte(domain, '.') < 0 {
		return false
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || !every(atom, isAtom) {
			return false
		}
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || !every(label, isLabel) {
			return false
		}
	}
	return true
}

// isURI implements format=uri: an RFC 3986 URI with a scheme that package net/url can parse.
func isURI(s string) bool {
	scheme, rest, found := strings.Cut(s, ":")
	if !found || scheme == "" || !isLetter(scheme[0]) || !every(scheme, isScheme) {
		return false
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	path, query, _ := strings.Cut(rest, "?")
	if after, found := strings.CutPrefix(path, "//"); found {
		slash := strings.IndexByte(after+"/", '/')
		if path = after[slash:]; !isAuthority(after[:slash]) {
			return false
		}
	}
	if !isPart(path, "/:@") || !isPart(query, "/:@?") || !isPart(fragment, "/:@?") {
		return false
	}
	_, err := url.Parse(s)
	return err == nil
}

// isAuthority reports whether s may follow the two slashes of a URI.
func isAuthority(s string) bool {
	if user, host, found := strings.Cut(s, "@"); found {
		if s = host; !isPart(user, ":") {
			return false
		}
	}
	host, port := s, ""
	if end := strings.IndexByte(s, ']'); strings.HasPrefix(s, "[") && end > 0 {
		address, err := netip.ParseAddr(s[1:end])
		if err != nil || !address.Is6() || address.Zone() != "" {
			return false
		}
		host, port = "", s[end+1:]
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 {
		host, port = s[:colon], s[colon:]
	}
	return isPart(host, "") && (port == "" || port[0] == ':' && every(port[1:], isDigit))
}

// isPart reports whether s has only the characters allowed in every part of a URI, and those in
// also.
func isPart(s, also string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isLetter(c) || isDigit(c) || strings.IndexByte("-._~!$&'()*+,;=", c) >= 0 || strings.IndexByte(also, c) >= 0:
		case c == '%' && i+2 < len(s) && IsHex(s[i+1]) && IsHex(s[i+2]):
			i += 2
		default:
			return false
		}
	}
	return true
}

// every reports whether is returns true for every byte of s.
func every(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLabel(c byte) bool  { return isLetter(c) || isDigit(c) || c == '-' }
func isScheme(c byte) bool { return isLabel(c) || c == '+' || c == '.' }

// isAtom reports whether c may occur unquoted in the local part of an e-mail address, between dots.
func isAtom(c byte) bool {
	return isLabel(c) || strings.IndexByte("!#$%&'*+/=?^_`{|}~", c) >= 0
}

// IsHex reports whether c is a hexadecimal digit.
func IsHex(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// IsToken reports whether name may be the name of a header.
func IsToken(name string) bool {
	return name != "" && every(name, func(c byte) bool {
		return isLabel(c) || strings.IndexByte("!#$%&'*+.^_`|~", c) >= 0
	})
}
