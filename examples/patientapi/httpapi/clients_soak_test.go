//go:build soak

package httpapi

import "testing"

// A thousand clients, each on a connection of its own, get whom they ask for.
func TestSoakThousandClientsGetWhomTheyAskFor(t *testing.T) { manyClients(t, 1000) }
