// Package gaterule keeps one rule of the gate, which is all that .ci/run runs: the
// result of a test depends on the code alone, never on how fast the machine is. It
// holds no code, only tests, which parse the tests of every module.
package gaterule
