// Package behind tests the HTTP middleware behind a real proxy: what it refuses must
// reach the client as it is, must not be tried again elsewhere, and must not take the
// service out of the proxy's rotation.
package behind
