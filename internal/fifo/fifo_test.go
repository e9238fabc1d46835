package fifo

import "testing"

// FuzzQueue compares every sequence of operations with a plain slice.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{1, 1, 0, 1, 0, 0, 0})
	f.Add(append(make([]byte, 40), 1, 1, 1))
	f.Fuzz(func(t *testing.T, ops []byte) {
		var q Queue[int]
		var twin []int
		for i, op := range ops {
			for range int(op)/2 + 1 {
				if op%2 == 1 {
					q.Push(i)
					twin = append(twin, i)
					continue
				}
				v, ok := q.Pop()
				if ok != (len(twin) > 0) {
					t.Fatalf("op %d: pop says %v with %d waiting", i, ok, len(twin))
				}
				if ok {
					if v != twin[0] {
						t.Fatalf("op %d: popped %d, want %d", i, v, twin[0])
					}
					twin = twin[1:]
				}
			}
			if q.Len() != len(twin) {
				t.Fatalf("op %d: length %d, want %d", i, q.Len(), len(twin))
			}
			if len(q.ring) > 8*max(len(twin), smallest) {
				t.Fatalf("op %d: %d places for %d", i, len(q.ring), len(twin))
			}
		}
	})
}
