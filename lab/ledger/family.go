package ledger

// Family is the claims of one experiment with what a report says about them.
type Family struct {
	ID     string // as in "spillway lab H"
	Title  string // one plain sentence, without its full stop
	Source string // the publisher that is credited beside each claim; empty for goals of our own
	Claims []Claim

	Sources []Source
	Method  []Note // how the figures were made
	Columns []Column
	Steps   Steps             // a table of its own; none without parts
	Behind  string            // the column that is above 1 where Spillway loses; empty: none
	Grid    string            // how the set-ups of a grid begin; empty: there is none
	Axes    map[string]string // set-ups whose loads are sizes, the parameter size of their runs, and what that counts: "workers"
}

// Source is a publication.
type Source struct{ Name, URL, What string }

// Note is a paragraph of the report's chapter on method.
type Note struct{ Title, Text string }

// Column is a figure of a run's Extra that the report's tables show.
type Column struct {
	Key, Name string
	Format    string // "nanos", "micros", "size", "percent", "ratio", "decimals"; empty: a number
}

// Steps are the parts of the difference between two contestants, one after the other.
type Steps struct {
	Of    string // what they are parts of, with its unit
	By    string // the contestant whose runs have them
	Parts []Column
}
