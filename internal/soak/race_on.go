//go:build race

package soak

const raced = true
