package limiter

import (
	"fmt"
	"strings"
)

// Mode says whether decisions are enforced.
type Mode uint8

const (
	Enforce Mode = iota // decide and enforce
	DryRun              // decide and count, admit all
	Off                 // admit all at once, uncounted, without taking a lock, while the intake is open
)

// String returns "enforce", "dryrun" or "off".
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case DryRun:
		return "dryrun"
	case Off:
		return "off"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode returns the mode with the name text: off, dryrun (or dry-run) or enforce, in
// upper or lower case.
func ParseMode(text string) (Mode, error) {
	switch strings.ToLower(text) {
	case "enforce":
		return Enforce, nil
	case "dryrun", "dry-run":
		return DryRun, nil
	case "off":
		return Off, nil
	}
	return Enforce, fmt.Errorf("limiter: unknown mode %.20q: use off, dryrun or enforce", text)
}

// MarshalText returns the text of String. An unknown mode is an error.
func (m Mode) MarshalText() ([]byte, error) {
	if m > Off {
		return nil, fmt.Errorf("limiter: unknown mode %d: use Enforce, DryRun or Off", m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText parses text as [ParseMode] does. An error leaves the mode unchanged.
func (m *Mode) UnmarshalText(text []byte) error {
	parsed, err := ParseMode(string(text))
	if err == nil {
		*m = parsed
	}
	return err
}
