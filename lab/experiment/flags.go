package experiment

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Common is the flags of every experiment.
type Common struct {
	Full  bool `env:"SPILLWAY_LAB_FULL" group:"Size" xor:"size" help:"The published sizes."`
	Quick bool `env:"SPILLWAY_LAB_QUICK" group:"Size" xor:"size" help:"A short run, to see how it works."`

	Repeats int    `env:"SPILLWAY_LAB_REPEATS" group:"Size" default:"5" help:"How often everything is run, interleaved; a verdict needs at least 5."`
	Again   int    `env:"SPILLWAY_LAB_AGAIN" group:"Size" default:"2" help:"How often a measurement that other processes disturbed is made again."`
	Seed    uint64 `env:"SPILLWAY_LAB_SEED" default:"0" help:"Of the order of the runs, the random input and the judge; 0 picks one and says which."`
	Out     string `env:"SPILLWAY_LAB_OUT" placeholder:"DIR" help:"Where the results go; ./spillway-results/<experiment>-<time> unless given. Must not hold results yet."`
	Resume  string `env:"SPILLWAY_LAB_RESUME" placeholder:"DIR" help:"Go on with the session in that folder, up to --repeats, with its settings."`
	JSON    bool   `env:"SPILLWAY_LAB_JSON" name:"json" help:"Print results.json on standard output; progress stays on standard error."`
}

// Flags is a new configuration for the command line to fill: a pointer to a struct.
func (e *Experiment) Flags() any { return e.config() }

// Takes says roughly how long the experiment takes at a size, in words, on an idle
// machine.
func (e *Experiment) Takes(size string) string {
	repeats := Sized[Common]("").Repeats
	plan, err := e.plan(e.Config(size))
	if err != nil {
		return "not known: " + err.Error()
	}
	return rough(plan.Expect(repeats))
}

// Sizes is a resolver that gives flags their values of --quick and --full.
func Sizes() kong.Resolver {
	return kong.ResolverFunc(func(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		size := chosenSize(ctx)
		if size == "" || !flag.Tag.Has(size) || fromEnvironment(flag) {
			return nil, nil
		}
		return flag.Tag.Get(size), nil
	})
}

func chosenSize(ctx *kong.Context) string {
	for _, f := range ctx.Flags() {
		if f.Name != "quick" && f.Name != "full" {
			continue
		}
		if on, ok := ctx.FlagValue(f).(bool); ok && on {
			return f.Name
		}
	}
	return ""
}

func fromEnvironment(flag *kong.Flag) bool {
	return slices.ContainsFunc(flag.Envs, func(name string) bool { _, ok := os.LookupEnv(name); return ok })
}

// Config returns the configuration of a size: "quick", "full", or "" for the default.
func (e *Experiment) Config(size string) any {
	c := e.config()
	if err := parse(c, size); err != nil {
		panic(fmt.Sprintf("experiment %s: %v", e.ID, err)) // a tag is wrong: every test of it says so
	}
	return c
}

// Sized is the configuration C of a size: "quick", "full", or "" for the default.
func Sized[C any](size string) C {
	var c C
	if err := parse(&c, size); err != nil {
		panic(fmt.Sprintf("%T: %v", c, err))
	}
	return c
}

func parse(config any, size string) error {
	k, err := kong.New(config, kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if size == "" || !flag.Tag.Has(size) {
			return nil, nil
		}
		return flag.Tag.Get(size), nil
	})))
	if err != nil {
		return err
	}
	_, err = k.Parse(nil)
	return err
}

// settingsOf lists a configuration's flags with their values.
func settingsOf(config any) string {
	k, err := kong.New(config)
	if err != nil {
		return ""
	}
	var parts []string
	for _, f := range k.Model.Flags {
		if f.Name != "help" {
			parts = append(parts, f.Name+" "+shown(f.Target))
		}
	}
	return strings.Join(parts, ", ")
}

// scaled says how a configuration differs from the full size.
func (e *Experiment) scaled(config any) string {
	full := e.Config("full")
	here, err1 := kong.New(config)
	there, err2 := kong.New(full)
	if err1 != nil || err2 != nil {
		return ""
	}
	var parts []string
	for i, f := range here.Model.Flags {
		other := there.Model.Flags[i]
		a, b := f.Target, other.Target
		if f.Name == "help" || reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s instead of %s", f.Name, shown(a), shown(b)))
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
