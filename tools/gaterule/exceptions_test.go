package gaterule

// exceptions are the files that may break the rule: how often, and why. The table may
// only shrink: a number that is larger than what is found is a failure too.
var exceptions = map[string]exception{}

type exception struct {
	times int
	why   string
}

// mostExceptions is how many files the table of exceptions may have.
const mostExceptions = 10
