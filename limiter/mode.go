package limiter

import (
	"fmt"
	"slices"
	"strings"
)

// Mode says whether decisions are enforced: Enforce, DryRun or Off.
type Mode uint8

const (
	Enforce Mode = iota // decide and enforce
	DryRun              // decide and count, admit all
	Off                 // admit all at once, uncounted, without taking a lock, while the intake is open
)

var modes = [...]string{Enforce: "enforce", DryRun: "dryrun", Off: "off"}

// String returns "enforce", "dryrun" or "off".
func (m Mode) String() string {
	if m > Off {
		return fmt.Sprintf("mode(%d)", uint8(m))
	}
	return modes[m]
}

// MarshalText returns the text of String. An unknown mode is an error.
func (m Mode) MarshalText() ([]byte, error) {
	if m > Off {
		return nil, fmt.Errorf("limiter: unknown mode %d: use Enforce, DryRun or Off", m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText accepts off, dryrun (or dry-run) and enforce, in upper or lower case. An error
// leaves the mode unchanged.
func (m *Mode) UnmarshalText(text []byte) error {
	name := strings.ToLower(string(text))
	i := slices.Index(modes[:], name)
	if name == "dry-run" {
		i = int(DryRun)
	}
	if i < 0 {
		return fmt.Errorf("limiter: unknown mode %.20q: use off, dryrun or enforce", text)
	}
	*m = Mode(i)
	return nil
}
