//go:build soak

package soak

const soaking = true
