package main

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completeArg is the first argument when a shell asks what may come next. The others are
// the words typed after the command, the last one up to the cursor.
const completeArg = "__complete"

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help teaches.
func (completionCmd) Help() string {
	return `The script asks this program for commands, flags, their values and built-in scenarios; elsewhere the shell completes files.

Examples, for this shell and for every later one:
  source <(spillway completion bash)
  spillway completion bash > ~/.local/share/bash-completion/completions/spillway
  spillway completion zsh > "${fpath[1]}/_spillway"
  spillway completion fish > ~/.config/fish/completions/spillway.fish`
}

func (c *completionCmd) Run(env *environment) error {
	_, err := io.WriteString(env.stdout, completionScripts[c.Shell])
	return err
}

var completionScripts = map[string]string{
	"bash": `_spillway() {
	local IFS=$'\n'
	COMPREPLY=($("$1" ` + completeArg + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o default -F _spillway spillway
`,
	"zsh": `#compdef spillway
_spillway() {
	local -a found
	found=(${(f)"$("${words[1]}" ` + completeArg + ` "${(@)words[2,CURRENT]}" 2>/dev/null)"})
	found=("${(@)found//:/\\:}")
	found=("${(@)found/$'\t'/:}")
	if (( ${#found} )); then _describe spillway found; else _files; fi
}
if [ "$funcstack[1]" = _spillway ]; then _spillway "$@"; else compdef _spillway spillway; fi
`,
	"fish": `function __spillway
	set -l words (commandline -opc)
	set -l typed (commandline -ct)
	set -l command $words[1]
	set -e words[1]
	set -l found ($command ` + completeArg + ` $words "$typed" 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path "$typed"
	end
end
complete -c spillway -f -a '(__spillway)'
`,
}

// complete returns what the last word may become, each with its help after a tab.
func complete(node *kong.Node, words []string) (found []string) {
	if len(words) == 0 {
		return nil
	}
	var value *kong.Flag // the last word is its value
	args := 0            // before the last word
	for _, word := range words[:len(words)-1] {
		child := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == word || slices.Contains(c.Aliases, word) })
		switch {
		case word == "=": // bash splits --flag=value there
		case value != nil:
			value = nil
		case strings.HasPrefix(word, "-"): // one with = has its value
			if f := flagOf(node, word); f != nil && !f.IsBool() {
				value = f
			}
		case child >= 0:
			node, args = node.Children[child], 0
		default:
			args++
		}
	}
	typed := strings.TrimPrefix(words[len(words)-1], "=")
	offer := func(word, help string) {
		if strings.HasPrefix(word, typed) {
			help, _, _ = strings.Cut(help, ". ")
			found = append(found, word+"\t"+strings.TrimSuffix(help, "."))
		}
	}
	offerValues := func(v *kong.Value) {
		for _, word := range values(v) {
			offer(word, "")
		}
	}
	switch {
	case value != nil:
		offerValues(value.Value)
	case node.Passthrough: // another program's
	case strings.HasPrefix(typed, "-"):
		for _, f := range slices.Concat(node.AllFlags(true)...) {
			offer("--"+f.Name, f.Help)
		}
	default:
		for _, c := range node.Children {
			if !c.Hidden {
				offer(c.Name, c.Help)
			}
		}
		if args < len(node.Positional) {
			offerValues(node.Positional[args])
		}
	}
	return found
}

// flagOf is the flag with that name, of the command or of those above it, or nil.
func flagOf(node *kong.Node, name string) *kong.Flag {
	for _, f := range slices.Concat(node.AllFlags(false)...) {
		if slices.Contains(namesOf(f), name) {
			return f
		}
	}
	return nil
}

// values are those that a flag or an argument can have, if they are known.
func values(v *kong.Value) []string {
	if known, ok := v.Target.Interface().(interface{ completions() []string }); ok {
		return known.completions()
	}
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}
