// Package local is what package jobqueue/jetstream asks of a server in its own process, which is one
// of package jobqueue/embedded. A program that uses jetstream alone links no server.
package local

import "net"

// Engine is a server in this process.
type Engine interface {
	InProcessConn() (net.Conn, error)

	// SyncsAlways reports whether acknowledged data is on disk.
	SyncsAlways() bool
	// Room returns why the disk has no room for more jobs, or nil. A queue asks before each commit.
	// While the disk has 64 MiB or more, the answer may be 10 ms old.
	Room() error
	// Failed returns why the store accepts nothing, or nil. After a disk error the store accepts
	// nothing until the server has been restarted, which the server does by itself.
	Failed() error
	// OnFirstOpen calls free the first time that a queue of this name is opened: an earlier process may
	// have held parts of the queue, and no process holds them now. If other processes may hold parts,
	// OnFirstOpen does not call free.
	OnFirstOpen(queue string, free func() error) error
}

// StreamName returns the name of the stream that holds a queue's jobs, on any server.
func StreamName(queue string) string { return "spillway-" + queue }
