//go:build !soak

package soak

const soaking = false
