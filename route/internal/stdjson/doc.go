// Package stdjson is encoding/json, in version 1 or, where the build has it, version 2. Both versions
// behave as alike as they can.
package stdjson
