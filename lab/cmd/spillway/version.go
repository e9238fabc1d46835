package main

import (
	"fmt"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints what the toolchain recorded about this build.
func (versionCmd) Run(env *environment) error {
	version, revision, modified := "unknown", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = " " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = ", modified"
			}
		}
		version += revision + modified + " " + info.GoVersion
	}
	_, err := fmt.Fprintln(env.stdout, "spillway", version)
	return err
}
