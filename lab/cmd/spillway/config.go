package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// configFlag names a file of flags. Its keys are the names of commands and of
// their flags; a key that is neither is an error.
type configFlag string

// BeforeResolve loads the file.
func (f configFlag) BeforeResolve(k *kong.Kong, ctx *kong.Context, trace *kong.Path) error {
	path := ""
	if v, ok := ctx.FlagValue(trace.Flag).(configFlag); ok {
		path = string(v)
	}
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the configuration file: %w", err)
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("the configuration file %s is not JSON: %w", path, err)
	}
	if err := known(k.Model.Node, values, ""); err != nil {
		return fmt.Errorf("the configuration file %s: %w", path, err)
	}
	ctx.AddResolver(fileResolver{values})
	return nil
}

// known reports keys that name no command or flag.
func known(node *kong.Node, values map[string]any, path string) error {
	for key, value := range values {
		name := path + key
		if i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == key }); i >= 0 {
			inner, ok := value.(map[string]any)
			if !ok {
				return fmt.Errorf("%s is a command: want {\"flag\": value}", name)
			}
			if err := known(node.Children[i], inner, name+"."); err != nil {
				return err
			}
			continue
		}
		if !hasFlag(node, key) {
			return fmt.Errorf("unknown key %q", name)
		}
	}
	return nil
}

func hasFlag(node *kong.Node, name string) bool {
	if slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
		return true
	}
	return node.DefaultCmd != nil && hasFlag(node.DefaultCmd, name) // "lab" stands for "lab run"
}

type fileResolver struct{ values map[string]any }

func (fileResolver) Validate(*kong.Application) error { return nil }

// Resolve finds a flag's value in the file, unless the environment has one.
func (r fileResolver) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	values := r.values
	if node := parent.Node(); node != nil {
		for _, name := range strings.Fields(node.FullPath())[1:] {
			inner, ok := values[name].(map[string]any)
			if !ok {
				if node.Parent != nil && node.Parent.DefaultCmd == node && name == node.Name {
					break // "lab" stands for "lab run"
				}
				return nil, nil
			}
			values = inner
		}
	}
	return values[flag.Name], nil
}
