package app

import (
	"net/url"
	"os"
	"slices"
	"strings"
)

// hidesPassword is an error if the command line, which every user of the machine
// can read, holds the password of a service. It cannot be taken back from there.
func (c *Command) hidesPassword(commandLine []string) error {
	for _, far := range []struct {
		name, url, flag, env, or string
		holds                    bool
	}{
		{"the Redis", c.Cache.URL, "cache", "SPILLWAY_CACHE", ", or give --cache-password-file", holdsPassword(c.Cache.URL)},
		{"the PostgreSQL", c.Store.Kind, "store", "SPILLWAY_STORE", ", or give --store-password-file", holdsPassword(c.Store.Kind)},
		{"the queue of exports", c.Exports.Queue, "export-queue", "SPILLWAY_EXPORT_QUEUE", "", strings.Contains(c.Exports.Queue, "@")}, // a name alone is a token
	} {
		for _, arg := range commandLine {
			if far.holds && strings.Contains(arg, far.url) {
				return usagef("the password of %s is on the command line, where every user of this machine sees it: "+
					"set %s to the URL instead of --%s%s", far.name, far.env, far.flag, far.or)
			}
		}
	}
	return nil
}

// holdsPassword reports whether the URL has a password, before its host or, as
// PostgreSQL's clients allow it, among its parameters.
func holdsPassword(address string) bool {
	_, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		return false
	}
	_, parameters, _ := strings.Cut(rest, "?")
	login := rest[:max(strings.LastIndex(rest, "@"), 0)]
	_, password, _ := strings.Cut(login, ":")
	return password != "" || slices.ContainsFunc(strings.FieldsFunc(parameters, separates), namesPassword)
}

func separates(c rune) bool { return c == '&' || c == ';' || c == '?' || c == '#' }

// namesPassword reports whether a parameter has a value and is one of the passwords: that
// of the user, or that of the client's key. Its name may be written with escapes.
func namesPassword(parameter string) bool {
	name, value, _ := strings.Cut(parameter, "=")
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	return value != "" && strings.HasSuffix(strings.ToLower(name), "password")
}

// passwordIn returns the password in the file that the flag of that name gives; empty if
// it gives none.
func passwordIn(flag, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", usagef("%s %s is empty", flag, file)
	}
	return password, nil
}
