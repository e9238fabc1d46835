package audit

import (
	"context"
	"errors"
	"iter"
)

// ErrNoRecords is matched by errors of opening what is there, can be read and holds no records: it is
// something else, or they were destroyed.
var ErrNoRecords = errors.New("no audit records")

// Storage keeps the records of one chain. It is safe for concurrent use, also by
// several processes.
type Storage interface {
	// Append writes the block and the head that extend makes of the present tip, both or
	// nothing. It calls extend once, while nothing else can be appended. It returns nil
	// when a crash can no longer take them away. After an error, they may be there if the
	// error came with the answer to the commit, as that of a lost connection. An error of
	// extend is returned as it is. The block is extend's, and the tip is Append's: neither
	// is kept.
	Append(ctx context.Context, extend func(Tip) (Block, Head, error)) error

	// Read calls look with the head and with the blocks in the order of their first
	// numbers, all as they are at one moment, and returns what look returns. Blocks are
	// read as look asks for them, once, and never held all in memory.
	Read(ctx context.Context, look func(Head, iter.Seq2[Block, error]) error) error

	// Close gives up what the storage holds. Nothing may be under way.
	Close() error
}
