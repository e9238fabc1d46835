//go:build !unix

package loadgen

import "net"

// look looks at idle connections.
type look struct{}

// alive reports every idle connection as open: this platform has no check.
func (*look) alive(net.Conn) bool { return true }
