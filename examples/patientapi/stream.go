package patientapi

// stream is a small random generator (SplitMix64), made per field: it costs
// nothing to start, which is why there can be so many.
type stream struct{ state uint64 }

// stream returns the random stream of one field of one entity.
func (g Generator) stream(kind string, number int, field string) stream {
	h := uint64(14695981039346656037) // FNV-1a
	mix := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for i := range len(kind) {
		mix(kind[i])
	}
	mix(0)
	for i := range len(field) {
		mix(field[i])
	}
	s := stream{h ^ g.Seed*0x9e3779b97f4a7c15}
	s.state = s.next() ^ uint64(number)*0xd1342543de82ef95
	s.next()
	return s
}

func (s *stream) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1. The bias is below n/2^32.
func (s *stream) below(n int) int { return int(s.next() >> 32 * uint64(n) >> 32) }

func (s *stream) chance(p float64) bool { return float64(s.next()>>11)/(1<<53) < p }

func (s *stream) word(words []string) string { return words[s.below(len(words))] }

// weighted picks an index of weights, or the one after the last, which gets what
// they leave over.
func (s *stream) weighted(weights ...float64) int {
	x := float64(s.next()>>11) / (1 << 53)
	for i, w := range weights {
		if x -= w; x < 0 {
			return i
		}
	}
	return len(weights)
}

func (s *stream) family() string { return s.word(familyStarts[:]) + s.word(familyEnds[:]) }

// date returns a day from first to last, both included.
func (s *stream) date(first, last day) day { return first + day(s.below(int(last-first)+1)) }

// few picks up to most different numbers below n.
func (s *stream) few(most, n int) []int {
	var picked [8]int
	count := s.below(most + 1)
	for i := range count {
	again:
		picked[i] = s.below(n)
		for _, earlier := range picked[:i] {
			if earlier == picked[i] {
				goto again
			}
		}
	}
	return append([]int(nil), picked[:count]...)
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
