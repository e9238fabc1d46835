package experiment

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Common is the flags of every session.
type Common struct {
	Quick  bool   `env:"SPILLWAY_LAB_QUICK" group:"Size" xor:"size" help:"A short run, to see how it works. Claims about sizes stay open."`
	Seed   uint64 `env:"SPILLWAY_LAB_SEED" default:"0" help:"Of the order of the runs, the random input and the judge; 0 picks one and says which."`
	Out    string `env:"SPILLWAY_LAB_OUT" placeholder:"DIR" help:"Where the results go; a new folder in ./spillway-results unless given. Must not hold results yet."`
	Resume string `env:"SPILLWAY_LAB_RESUME" placeholder:"DIR" help:"Go on with the session in that folder, with its settings."`
	JSON   bool   `env:"SPILLWAY_LAB_JSON" name:"json" help:"Print results.json on standard output; progress stays on standard error."`
}

// Single is the flags of a session of one experiment.
type Single struct {
	Common `embed:""`

	Full    bool `env:"SPILLWAY_LAB_FULL" group:"Size" xor:"size" help:"The published sizes."`
	Repeats int  `env:"SPILLWAY_LAB_REPEATS" group:"Size" default:"7" least:"1" most:"1000" help:"How often everything is run, interleaved; a verdict needs at least 7, of exact counts and yes or no at least 5, and a claim of several parts up to 9 to fail by one of them. With --resume: up to how many."`
	Again   int  `env:"SPILLWAY_LAB_AGAIN" group:"Size" default:"2" least:"0" help:"How often a measurement that other processes disturbed is made again."`
}

// Takes says roughly how long the experiment takes at a size, in words, on an idle
// machine.
func (e *Experiment) Takes(size string) string {
	repeats := Sized[Single]("").Repeats
	plan, err := e.plan(e.Config(size))
	if err != nil {
		return "not known: " + err.Error()
	}
	return rough(plan.Expect(repeats))
}

// Sizes is a resolver that gives flags their values of --quick and --full.
func Sizes() kong.Resolver {
	return sizes(func(ctx *kong.Context) string {
		for _, f := range ctx.Flags() {
			if (f.Name == "quick" || f.Name == "full") && ctx.FlagValue(f) == true {
				return f.Name
			}
		}
		return ""
	})
}

// sizes gives flags their values of a size, unless the environment has one.
func sizes(size func(*kong.Context) string) kong.Resolver {
	return kong.ResolverFunc(func(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if chosen := size(ctx); chosen != "" && flag.Tag.Has(chosen) && !InEnvironment(flag) {
			return flag.Tag.Get(chosen), nil
		}
		return nil, nil
	})
}

// InEnvironment reports whether the environment has a value for the flag.
func InEnvironment(flag *kong.Flag) bool {
	return slices.ContainsFunc(flag.Envs, func(name string) bool { _, ok := os.LookupEnv(name); return ok })
}

// Config returns the configuration of a size: "quick", "full", or "" for the default.
func (e *Experiment) Config(size string) any {
	c := e.Flags()
	fill(c, size)
	return c
}

// Sized is the configuration C of a size: "quick", "full", or "" for the default.
func Sized[C any](size string) (c C) {
	fill(&c, size)
	return c
}

// Check holds the flags against their limits.
func (c Single) Check() error { return check(&c) }

// fill panics if a tag is wrong: every test of the experiment says so. The environment
// does not count.
func fill(config any, size string) {
	k := kong.Must(config, kong.Resolvers(sizes(func(*kong.Context) string { return size })))
	for _, f := range k.Model.Flags {
		f.Envs, f.Tag.Envs = nil, nil
	}
	if _, err := k.Parse(nil); err != nil {
		panic(fmt.Sprintf("%T: %v", config, err))
	}
}

// flags are those of a configuration, with their values.
func flags(config any) []*kong.Flag { return kong.Must(config, kong.NoDefaultHelp()).Model.Flags }

// settingsOf lists a configuration's flags with their values.
func settingsOf(config any) string {
	var parts []string
	for _, f := range flags(config) {
		parts = append(parts, f.Name+" "+shown(f.Target))
	}
	return strings.Join(parts, ", ")
}

// scaled says how a configuration differs from the full size.
func (e *Experiment) scaled(config any) string {
	var parts []string
	full := flags(e.Config("full"))
	for i, f := range flags(config) {
		if a, b := f.Target, full[i].Target; !reflect.DeepEqual(a.Interface(), b.Interface()) {
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", f.Name, shown(a), shown(b)))
		}
	}
	return strings.Join(parts, "; ")
}

func shown(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		if v.Len() == 0 {
			return "all"
		}
		return strings.Trim(fmt.Sprint(v.Interface()), "[]")
	}
	return fmt.Sprint(v.Interface())
}

// Known checks names that the user gave against those that exist.
func Known(flag string, given, known []string) error {
	for _, name := range given {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown %s %q: want one of %s, or leave the flag out for all", flag, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Wanted reports whether the user gave the name, or none: all are wanted then.
func Wanted(given []string, name string) bool {
	return len(given) == 0 || slices.Contains(given, name)
}

// Chosen is the contestants that the user gave, or all of them if none was given.
func Chosen(given, all []string) ([]string, error) {
	if len(given) == 0 {
		return all, nil
	}
	return given, Known("contestant", given, all)
}

// limits are the tags that limit a flag: a number or a duration, or each in a list.
var limits = []struct {
	tag, words string
	keeps      func(x, limit float64) bool // what is not a number keeps none
}{
	{"above", "more than ", func(x, limit float64) bool { return x > limit }},
	{"least", "at least ", func(x, limit float64) bool { return x >= limit }},
	{"most", "at most ", func(x, limit float64) bool { return x <= limit }},
}

// check holds a configuration against the limits of its flags. A limited list that has a
// default must not be empty.
func check(config any) error {
	for _, f := range flags(config) {
		values := []reflect.Value{f.Target}
		if f.Target.Kind() == reflect.Slice {
			values = nil
			for _, v := range f.Target.Seq2() {
				values = append(values, v)
			}
		}
		var want []string
		within := len(values) > 0 || !f.HasDefault
		for _, l := range limits {
			if !f.Tag.Has(l.tag) {
				continue
			}
			want = append(want, l.words+f.Tag.Get(l.tag))
			for _, v := range values {
				within = within && l.keeps(v.Convert(reflect.TypeFor[float64]()).Float(), limit(f.Tag.Get(l.tag)))
			}
		}
		if want != nil && !within {
			given := shown(f.Target)
			if len(values) == 0 {
				given = "empty"
			}
			return fmt.Errorf("%s is %s: want %s", f.Name, given, inWords(want))
		}
	}
	return nil
}

// inWords joins limits: "at least 1 and at most 64" is "1 to 64".
func inWords(limits []string) string {
	words := strings.Join(limits, " and ")
	if low, found := strings.CutPrefix(words, "at least "); found {
		if from, to, both := strings.Cut(low, " and at most "); both {
			return from + " to " + to
		}
	}
	return words
}

// limit is a tag's number or duration.
func limit(s string) float64 {
	if d, err := time.ParseDuration(s); err == nil {
		return float64(d)
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no limit: want a number or a duration", s)) // every test of the experiment says so
	}
	return x
}
