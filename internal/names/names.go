// Package names bounds the length of names that come from outside, such as keys and kinds of work.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Longest is the length of the longest name that is kept as it is, in bytes.
const Longest = 128

// Bounded returns name, or what stands for a name that is longer than Longest: its beginning and a hash, of
// Longest bytes together.
func Bounded(name string) string {
	if len(name) > Longest {
		name = hashed(name)
	}
	return name
}

func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	const begin = Longest - 1 - 2*sha256.Size
	return strings.ToValidUTF8(name[:begin], "?") + "#" + hex.EncodeToString(sum[:])
}
