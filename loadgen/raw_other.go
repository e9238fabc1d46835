//go:build !unix

package loadgen

import "net"

// asker writes nothing: on this platform that is left to the connection.
type asker struct{}

func newAsker(net.Conn) *asker { return nil }

func (*asker) ask([]byte) (written int) { return 0 }

// alive believes that every idle connection is open: this platform does not say.
func alive(net.Conn) bool { return true }
