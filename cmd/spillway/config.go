package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/lab/experiment"
)

// configFlag names a file of flags. Its keys are the names of commands and of
// their flags; a key that is neither is an error.
type configFlag string

// BeforeResolve loads the file. The environment wins over it.
func (configFlag) BeforeResolve(k *kong.Kong, ctx *kong.Context, trace *kong.Path) error {
	path, _ := ctx.FlagValue(trace.Flag).(configFlag)
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(string(path))
	if err != nil {
		return fmt.Errorf("the configuration file: %w", err)
	}
	var keys map[string]any
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &keys); err != nil {
		return fmt.Errorf("the configuration file %s is not JSON: %w", path, err)
	}
	values := map[*kong.Flag]any{}
	if err := assign(values, k.Model.Node, keys, ""); err != nil {
		return fmt.Errorf("the configuration file %s: %w", path, err)
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if experiment.InEnvironment(flag) {
			return nil, nil
		}
		return values[flag], nil
	}))
	return nil
}

// assign gives the flags of a command, and of those below it, their values.
func assign(values map[*kong.Flag]any, node *kong.Node, keys map[string]any, path string) error {
	for key, value := range keys {
		name := path + key
		if i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == key }); i >= 0 {
			inner, ok := value.(map[string]any)
			if !ok {
				return fmt.Errorf("%s is a command: want {\"flag\": value}", name)
			}
			if err := assign(values, node.Children[i], inner, name+"."); err != nil {
				return err
			}
			continue
		}
		i := slices.IndexFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == key })
		if i < 0 {
			return fmt.Errorf("unknown key %q", name)
		}
		values[node.Flags[i]] = value
	}
	return nil
}
