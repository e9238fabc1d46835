package loadgen

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil && strings.Contains(s, "://") {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the verb and a second copy of the URL
		}
		return nil, fmt.Errorf("loadgen: URL %q: %w", s, err)
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("loadgen: URL %q: want http://host:port/path or https://host:port/path", s)
	}
	return u, nil
}

// parseProxy returns the proxy of cfg, or nil.
func parseProxy(cfg *HTTPConfig) (*url.URL, error) {
	if cfg.Proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(cfg.Proxy)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, errors.New("loadgen: the proxy: want a URL such as http://localhost:3128 or socks5://localhost:1080") // without the text, which may hold a password
	}
	if cfg.Dial != nil {
		return nil, errors.New("loadgen: Dial and Proxy exclude each other: use one of them")
	}
	if cfg.HTTP2 && strings.HasPrefix(cfg.URL, "http:") && strings.HasPrefix(u.Scheme, "http") {
		return nil, errors.New("loadgen: no proxy passes HTTP/2 on to an http URL: use an https URL, or HTTP/1.1")
	}
	return u, nil
}

// cloneHeader copies h in canonical form, or returns an error for a line that net/http would refuse
// to send.
func cloneHeader(h http.Header) (http.Header, error) {
	c := make(http.Header, len(h))
	for name, values := range h {
		if !isToken(name) {
			return nil, fmt.Errorf("loadgen: header name %q: want letters, digits and -", name)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, isControl) {
				return nil, fmt.Errorf("loadgen: header %s: its value %q holds a control character", name, v)
			}
			c.Add(name, v)
		}
	}
	return c, nil
}

// isToken reports whether s is a token of RFC 9110, as methods and header names are.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isPlainHost reports whether a host can be sent without translation.
func isPlainHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetterOrDigit(c) && strings.IndexByte(".-_:[]", c) < 0 {
			return false
		}
	}
	return true
}

// isPlainTarget reports whether s, a path with a query, can be sent unchanged.
func isPlainTarget(s string) bool {
	if s == "" || s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetterOrDigit(c) && strings.IndexByte("/?&=-_.~!$'()*+,;:@", c) < 0 {
			return false
		}
	}
	return true
}

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c)
}
