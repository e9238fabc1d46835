package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Users come with the lines of other load generators. A flag that means the same here has their
// name, too: it is a short name or an alias of ours. This file does what the parser cannot. A long
// name may have a single dash, as Go's package flag has it. A usual flag that only another
// generator has, or a value that means something else there, is an error that says what to write.

// instead says what to write for a flag that only other load generators have, or what to do
// without it.
var instead = explained(
	"write --clients N, or beside --rate --max-in-flight N", "workers max-workers max-connections",
	"write --profile: 0-20:30s rises to 20 a second within 30s", "stage stages",
	"write --rate N (bombardier), or --follow to follow redirects (oha)", "r",
	"write -d @FILE for the body in a file", "D body-file p",
	"write -H 'Content-Type: TYPE', or --timeout TIME (wrk)", "T content-type",
	"write -H 'User-Agent: NAME'", "U user-agent",
	"write -H 'Host: NAME'", "host",
	"write -H 'Accept: TYPE' (hey, oha), or USER:PASSWORD@ before the host in the URL (ab)", "A",
	"write USER:PASSWORD@ before the host in the URL (hey, oha), or -H 'Connection: close' (bombardier)", "a",
	"write < FILE: without a URL, targets are read from standard input", "targets urls-from-file",
	"write --data FILE and {{.column}} in the URL, --mix FILE for several requests, or --profile for a rate that changes", "s script",
	"write > FILE: the result goes to standard output, as JSON with --json", "output out summary-export j",
	"write --follow to follow redirects", "redirects redirect max-redirects",
	"write -H 'Connection: close' for a connection for each request; otherwise they are kept alive", "keepalive disable-keepalive no-connection-reuse no-vu-connection-reuse",
	"write --insecure to accept any certificate (bombardier); connections are kept alive anyway (ab)", "k",
	"threads are not needed: leave it out", "threads",
	"latencies are always printed, from the intended start of --rate: leave it out", "latency latencies latency-correction l",
	"not needed: leave it out", "cpus quiet no-print print no-tui no-summary disable-compression disable-redirects",
)

// explained reads pairs of an explanation and the names that it is for.
func explained(pairs ...string) map[string]string {
	m := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		for name := range strings.FieldsSeq(pair[1]) {
			m[dashed(name)] = pair[0]
		}
	}
	return m
}

// translate returns the line with all flags as the parser knows them, or an error that says what
// to change. A line that asks for help needs no other flags. A line without load, capacity or
// compare stays as it is.
func translate(model *kong.Node, line []string) ([]string, error) {
	at := 0
	for at < len(line) && strings.HasPrefix(line[at], "-") {
		if line[at] == "--config" {
			at++
		}
		at++
	}
	switch help := slices.Contains(line, "--help") || slices.Contains(line, "-h"); {
	case at < len(line) && !slices.Contains([]string{"load", "capacity", "compare"}, line[at]):
		command := slices.ContainsFunc(model.Children, func(c *kong.Node) bool { return c.Name == line[at] })
		if !command && !help && slices.ContainsFunc(line, isURL) {
			return line, errors.New("write load before the flags and the URL: spillway load -z 10s -c 10 URL; see spillway load --help")
		}
		return line, nil
	case at >= len(line):
		return line, nil
	case help:
		return append(slices.Clone(line[:at+1]), "--help"), nil
	}
	d := dialect{line[at], flagsOf(model, line[at]), flagsOf(model, "load")}
	words, err := d.translate(line[at+1:])
	if err != nil {
		return nil, fmt.Errorf("%w; see spillway %s --help", err, d.command)
	}
	return slices.Concat(line[:at+1], words), nil
}

// flagsOf are the flags of a command and those of all commands.
func flagsOf(model *kong.Node, command string) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	i := slices.IndexFunc(model.Children, func(c *kong.Node) bool { return c.Name == command })
	for _, f := range slices.Concat(model.Children[i].AllFlags(false)...) {
		for _, name := range namesOf(f) {
			flags[name] = f
		}
	}
	return flags
}

// namesOf are the names of a flag, with their dashes.
func namesOf(f *kong.Flag) []string {
	names := []string{"--" + f.Name}
	if f.Short != 0 {
		names = append(names, "-"+string(f.Short))
	}
	for _, alias := range f.Aliases {
		names = append(names, dashed(alias))
	}
	return names
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// dialect is what can be said to a command.
type dialect struct {
	command string
	own     map[string]*kong.Flag // by every name with its dashes
	load    map[string]*kong.Flag // those of spillway load
}

func (d *dialect) translate(words []string) (out []string, err error) {
	var wrong []string
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			out = append(out, words[i:]...)
			break
		}
		if isValue(words[i]) {
			out = append(out, words[i])
			continue
		}
		t := d.split(words[i])
		f, said := d.own[t.name], d.instead(t.name)
		if f == nil {
			out = append(out, t.word) // without an explanation the parser says that there is no such flag
		} else {
			out = append(out, t.ours(f))
			if !t.joined && !f.IsBool() && i+1 < len(words) && isValue(words[i+1]) {
				i++
				t.value = words[i]
				out = append(out, t.value)
			}
			said = t.mistaken(f)
		}
		if said != "" {
			wrong = append(wrong, fmt.Sprintf("%.100s: %s", t.word, said))
		}
	}
	if len(wrong) > 0 {
		return out, errors.New(strings.Join(wrong, "; "))
	}
	return out, nil
}

func isValue(word string) bool { return word == "-" || !strings.HasPrefix(word, "-") }

// instead says what to write for a flag that the command does not have; empty if nobody has it.
func (d *dialect) instead(name string) string {
	if d.own[name] == nil && d.load[name] != nil {
		return "only spillway load has --" + d.load[name].Name
	}
	return instead[name]
}

// typed is a flag as it stands in a line.
type typed struct {
	word   string // the whole word
	name   string // with the dashes that the parser expects
	value  string
	joined bool // the value is part of the word
}

// split finds the name in a word that begins with a dash.
func (d *dialect) split(word string) typed {
	t := typed{word: word}
	t.name, t.value, t.joined = strings.Cut(word, "=")
	if strings.HasPrefix(word, "--") || len(t.name) <= 2 {
		return t
	}
	known := func(name string) bool { return d.own[name] != nil || d.instead(name) != "" }
	if long, short := "-"+t.name, word[:2]; known(long) {
		t.name = long
	} else if known(short) {
		t.name, t.value, t.joined = short, word[2:], true
	}
	return t
}

// ours is the word as the parser knows it.
func (t *typed) ours(f *kong.Flag) string {
	switch dashes := len(t.word) - len(strings.TrimLeft(t.word, "-")); {
	case dashes == 1 && strings.HasPrefix(t.name, "--"):
		return "-" + t.word
	case dashes == 1 && strings.HasPrefix(t.word, t.name+"="): // -c=50 is 50, and not "=50"
		return "--" + f.Name + "=" + t.value
	}
	return t.word
}

// mistaken says what to write for a value that means something else to another load generator.
func (t *typed) mistaken(f *kong.Flag) string {
	_, noNumber := strconv.ParseFloat(t.value, 64)
	span, noSpan := time.ParseDuration(strings.ToLower(t.value)) // wrk has 30S, too
	switch {
	case t.name == "-d" && (noNumber == nil || noSpan == nil):
		return "-d is the body here: write --duration TIME, such as 30s, or --body " + t.value + " to send that text"
	case (t.name == "-d" || t.name == "-m") && t.joined:
		return "there is no such flag: write the value of " + t.name + " apart from it"
	case f.Name == "duration" && noSpan == nil && span == 0:
		return "no duration is endless here: write --duration 24h, and Ctrl-C ends it and prints the result"
	case f.Name == "body" && t.name != "-d" && !strings.HasPrefix(t.word, "--") && !strings.HasPrefix(t.value, "@"):
		return "write -d @FILE for the body in a file, or --body TEXT to send that text"
	}
	return ""
}
