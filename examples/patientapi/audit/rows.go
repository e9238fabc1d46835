package audit

// Rows is what a storage in SQL reads from.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
}

// EachBlock yields the blocks in rows of their first number and their records, and what
// went wrong.
func EachBlock(rows Rows, yield func(Block, error) bool) {
	for rows.Next() {
		var b Block
		err := rows.Scan(&b.First, &b.Records)
		if !yield(b, err) || err != nil {
			return
		}
	}
	if err := rows.Err(); err != nil {
		yield(Block{}, err)
	}
}

// ScanTip returns the tip in a row of the head's sequence, hash and seal and the last
// block's first number and records. It takes a head that is gone, as after a restore of
// parts, for that of a chain without records: the writer and Verify see that it is not.
func ScanTip(row interface{ Scan(dest ...any) error }) (t Tip, err error) {
	var (
		sequence, first *int64
		hash, seal      []byte
	)
	err = row.Scan(&sequence, &hash, &seal, &first, &t.Last.Records)
	if sequence != nil {
		t.Head.Sequence = *sequence
	}
	if first != nil {
		t.Last.First = *first
	}
	copy(t.Head.Hash[:], hash)
	copy(t.Head.Seal[:], seal)
	return t, err
}
