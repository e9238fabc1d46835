package main

import (
	"cmp"
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
// name may have a single dash, as Go's package flag has it. A flag that only another generator
// has, or a value that only makes sense there, is an error that says what to write.

// instead says what to write for a flag that only other load generators have, or what to do
// without it. VALUE stands for the flag's value.
var instead = explained(
	"write --clients VALUE, or beside --rate --max-in-flight VALUE", "workers max-workers max-connections",
	"write --profile: 0-20:30s rises to 20 a second within 30s", "stage stages burst-rate burst-delay",
	"write --rate VALUE (bombardier), or --follow to follow redirects (oha); ab's is not needed", "r",
	"write --clients VALUE (k6), or -X PUT -d @FILE (ab)", "u",
	"write --requests VALUE (k6), or -X HEAD (ab)", "i",
	"write -d VALUE", "b",
	"write -d @VALUE for the body in a file", "D body-file",
	"write -d @FILE for the body in a file", "f p",
	"write -H 'Content-Type: VALUE', or --timeout VALUE (wrk)", "T",
	"write -H 'Content-Type: VALUE'", "content-type",
	"write -H 'User-Agent: VALUE'", "U user-agent",
	"write -H 'Cookie: VALUE'", "C",
	"write -H 'Host: VALUE'", "host",
	"write -H 'Accept: VALUE' (hey, oha), or USER:PASSWORD@ before the host in the URL (ab)", "A",
	"write USER:PASSWORD@ before the host in the URL (hey, oha), or -H 'Connection: close' (bombardier)", "a",
	"write < VALUE: without a URL, targets are read from standard input", "targets urls-from-file",
	"write --data FILE and {{.column}} in the URL, --mix FILE for several requests, or --profile for a rate that changes (ab's -s is --timeout)", "s script",
	"write --data FILE, with {{.column}} in the URL or the body", "rand-regex-url Z stream",
	"write > FILE: the result goes to standard output, as JSON with --json", "output out summary-export j",
	"write --csv FILE for a line each second", "g",
	"write --follow to follow redirects", "redirects redirect max-redirects",
	"no redirect is followed unless --follow says so: leave it out", "disable-redirects",
	"write -H 'Connection: close' for a connection for each request; otherwise they are kept alive", "keepalive disable-keepalive disableKeepAlives no-connection-reuse no-vu-connection-reuse",
	"write --insecure to accept any certificate (bombardier); connections are kept alive anyway (ab)", "k",
	"threads are not needed: leave it out", "threads",
	"latencies are always printed: leave it out", "latency latencies u_latency L l",
	"latency counts from the intended start of --rate: leave it out", "latency-correction",
	"no compression is asked for: leave it out", "disable-compression",
	"write --proxy URL, with USER:PASSWORD@ before its host", "P",
	"there is nothing like it here, but --proxy URL may have USER:PASSWORD@ before its host", "proxy-header",
	"not needed: leave it out", "cpus quiet no-print print no-tui no-summary no-usage-report discard-response-bodies fasthttp http1 http-version lazy more name v verbose w fps tag batch summary-trend-stats stats-success-breakdown",
	"there is nothing like it here: leave it out", "F laddr local-addr resolvers connect-to dns-ttl max-body chunked session-tickets prometheus-addr opentelemetry-addr http-debug",
)

// decided says the same for flags whose value shows which generator is meant.
var decided = map[string]func(value string) string{
	"-T": func(value string) string {
		if strings.Contains(value, "/") {
			return "write -H 'Content-Type: VALUE'"
		}
		return "write --timeout VALUE (wrk)"
	},
	"-A": func(value string) string {
		if strings.Contains(value, "/") {
			return "write -H 'Accept: VALUE'"
		}
		return "write VALUE@ before the host in the URL (ab)"
	},
}

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

// missing says what to write for a flag of spillway load that another command does not have.
var missing = map[string]map[string]string{
	"capacity": {
		"clients": "the search finds the concurrency: leave it out", "rate": "the search finds the rate: write --max-rate VALUE to bound it",
		"requests": "write --time for how long the search may take", "duration": "write --time VALUE for how long the search may take",
		"format": "write --json for JSON", "expect": "write --slo",
	},
	"compare": {
		"requests": "write --rounds, and --block for how long each part of a round is",
		"duration": "write --block VALUE for how long each part of a round is, and --rounds",
		"format":   "write --json for JSON", "expect": "write --metric",
	},
}

// dialect is what can be said to a command.
type dialect struct {
	command string
	own     map[string]*kong.Flag // by every name with its dashes
	load    map[string]*kong.Flag // those of spillway load
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
	if at >= len(line) || !slices.Contains([]string{"load", "capacity", "compare"}, line[at]) {
		return line, commandless(model, line, at)
	}
	if slices.Contains(line, "--help") || slices.Contains(line, "-h") {
		return append(slices.Clone(line[:at+1]), "--help"), nil
	}
	d := dialect{line[at], flagsOf(model, line[at]), flagsOf(model, "load")}
	words, err := d.translate(line[at+1:])
	if err != nil {
		return nil, fmt.Errorf("%w; see spillway %s --help", err, d.command)
	}
	return slices.Concat(line[:at+1], words), nil
}

// commandless is an error for a line of a generator that has no commands, or others than ours. The
// first word that is no flag is at the index at.
func commandless(model *kong.Node, line []string, at int) error {
	isCommand := func(word string) bool {
		return slices.ContainsFunc(model.Children, func(c *kong.Node) bool { return c.Name == word })
	}
	switch {
	case at >= len(line) || isCommand(line[at]) || slices.Contains(line, "--help"):
		return nil
	case elsewhereCommand(line[at]):
		return fmt.Errorf("%s: write load; see spillway load --help", line[at])
	case slices.ContainsFunc(line, isURL):
		return errors.New("write load before the flags and the URL: spillway load -z 10s -c 10 URL; see spillway load --help")
	}
	return nil
}

// elsewhereCommand reports whether a word is vegeta's or k6's command that sends load.
func elsewhereCommand(word string) bool { return word == "attack" || word == "run" }

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

// typed is a flag as it stands in a line.
type typed struct {
	word     string // the whole word
	name     string // with the dashes that the parser expects
	value    string
	attached bool // the value is part of the word
	valued   bool // there is a value
}

func (t *typed) String() string {
	if t.valued && !t.attached {
		return t.word + " " + t.value
	}
	return t.word
}

func (d *dialect) translate(words []string) (out []string, err error) {
	var wrong []string
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			out = append(out, words[i:]...)
			break
		}
		if isValue(words[i]) {
			if said := positional(words[i]); said != "" && d.command == "load" {
				wrong = append(wrong, words[i]+": "+said)
			}
			out = append(out, words[i])
			continue
		}
		t := d.split(words[i])
		f, said := d.own[t.name], d.instead(t.name)
		takes := strings.Contains(said, "VALUE")
		if known := cmp.Or(f, d.load[t.name]); known != nil {
			takes = !known.IsBool()
		}
		if takes && !t.attached && i+1 < len(words) && isValue(words[i+1]) {
			i++
			t.value, t.valued = words[i], true
		}
		if given := decided[t.name]; f == nil && t.valued && given != nil {
			said = given(t.value)
		}
		if f != nil {
			said = t.problem(f)
			out = append(out, t.words(f)...)
		} else if said == "" { // the parser says that there is no such flag
			out = append(out, t.word)
		}
		if said != "" {
			wrong = append(wrong, t.said(said))
		}
	}
	if len(wrong) > 0 {
		return out, errors.New(strings.Join(wrong, "; "))
	}
	return out, nil
}

// positional says what to write for a word in the place of a URL that only means something to
// another load generator.
func positional(word string) string {
	switch {
	case elsewhereCommand(word):
		return "not needed after a command: leave it out"
	case strings.HasSuffix(word, ".js"):
		return "scripts are not run: write the URL, and --data, --mix or --profile for what the script varies"
	}
	return ""
}

func isValue(word string) bool { return word == "-" || !strings.HasPrefix(word, "-") }

// split finds the name in a word that begins with a dash.
func (d *dialect) split(word string) typed {
	t := typed{word: word}
	t.name, t.value, t.attached = strings.Cut(word, "=")
	if !strings.HasPrefix(word, "--") && len(t.name) > 2 {
		if d.known("-" + t.name) {
			t.name = "-" + t.name
		} else if short := word[:2]; d.own[short] != nil || d.load[short] != nil || strings.Trim(word[2:3], "0123456789") == "" {
			t.name, t.value, t.attached = short, word[2:], true
		}
	}
	t.valued = t.attached
	return t
}

func (d *dialect) known(name string) bool {
	return d.own[name] != nil || d.instead(name) != ""
}

// instead says what to write for a flag that the command does not have; empty if nobody has it.
func (d *dialect) instead(name string) string {
	if d.own[name] != nil {
		return ""
	}
	if f := d.load[name]; f != nil {
		if said := missing[d.command][f.Name]; said != "" {
			return said
		}
		return "only spillway load has --" + f.Name
	}
	return instead[name]
}

// words are what the parser gets for one of its flags.
func (t *typed) words(f *kong.Flag) []string {
	word := t.word
	switch short := !strings.HasPrefix(t.name, "--"); {
	case short && f.Name != "body" && strings.HasPrefix(t.word, t.name+"="): // -c=50 is 50, and not "=50"
		word = "--" + f.Name + t.word[len(t.name):]
	case !short && !strings.HasPrefix(t.word, "--"):
		word = "-" + t.word
	}
	if t.valued && !t.attached {
		return []string{word, t.value}
	}
	return []string{word}
}

// problem says what to write for a value that means something else to another load generator.
func (t *typed) problem(f *kong.Flag) string {
	_, isNumber := strconv.ParseFloat(t.value, 64)
	span, isSpan := time.ParseDuration(strings.ToLower(t.value)) // wrk has 30S, too
	_, isTime := f.Target.Interface().(time.Duration)
	joined := t.attached && !strings.HasPrefix(t.word, "--") && t.word == t.name+t.value // as in -d5s, and not -d=5s
	switch {
	case t.name == "-d" && isNumber == nil:
		return "-d is the body here: write --duration VALUEs for seconds, or --body VALUE to send that text"
	case t.name == "-d" && isSpan == nil:
		return "-d is the body here: write --duration VALUE, or --body VALUE to send that text"
	case t.name == "-d" && strings.HasPrefix(t.word, "-d="):
		return "write -d VALUE, or --body =VALUE if the text begins with ="
	case t.name == "-d" && joined && strings.ToUpper(t.value[:1]) != strings.ToLower(t.value[:1]):
		return "there is no such flag: write -d VALUE to send that text"
	case t.name == "-m" && joined && strings.ToUpper(t.value[:1]) != t.value[:1]:
		return "there is no such flag: write -m VALUE for that method"
	case f.Name == "duration" && isSpan == nil && span == 0:
		return "no duration is endless here: write --duration 24h, and Ctrl-C ends it and prints the result"
	case f.Name == "body" && t.valued && t.name != "-d" && !strings.HasPrefix(t.word, "--") && !strings.HasPrefix(t.value, "@"):
		return "write -d @VALUE for the body in a file, or --body VALUE to send that text"
	case t.name == "-t" && isNumber == nil && t.value != "0":
		return "write -t VALUEs for a timeout in seconds (hey), or --duration VALUEs (ab); wrk's threads are not needed: leave them out"
	case isTime && isNumber == nil && isSpan != nil:
		return "write --" + f.Name + " VALUEs for seconds"
	case t.name == "-q" && !t.valued:
		return "the rate needs a number, as in hey and oha; to be quiet, write 2> /dev/null"
	case f.Name == "format" && t.valued && t.value == "csv":
		return "write --csv FILE for a line each second"
	case f.Name == "format" && t.value == "http":
		return "targets are in that form anyway: leave it out"
	case f.Name == "format" && t.valued && !slices.Contains(f.EnumSlice(), t.value):
		return "write --format " + strings.Join(f.EnumSlice(), ", ") + " for the form, and > FILE for another place"
	}
	return ""
}

// said is one part of the error.
func (t *typed) said(what string) string {
	value := t.value
	if !t.valued {
		value = "VALUE"
	}
	return fmt.Sprintf("%.100s: %s", t, strings.ReplaceAll(what, "VALUE", value))
}
