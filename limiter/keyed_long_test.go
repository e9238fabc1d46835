package limiter

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/names"
)

// A client that sends keys and kinds of a megabyte must not fill the memory.
func TestLongKeysAndKindsAreNotKept(t *testing.T) {
	k := family(t, 8)
	request := strings.Repeat("x", 1<<20)
	for i := range 3 {
		key := request[i:]
		ctx := spillway.WithKind(t.Context(), key)
		for range 2 {
			if err := k.Do(ctx, key, nothing); err != nil {
				t.Fatal(err)
			}
		}
		if l, err := k.Get(key); err != nil || l.Stats().Completed != 2 {
			t.Errorf("another limiter for the same key: %v", err)
		}
	}
	keys := 0
	for key, s := range k.All() {
		keys++
		if len(key) > names.Longest || s.Name != key || !strings.HasPrefix(key, "xxx") {
			t.Errorf("a key of %d bytes and a name of %d", len(key), len(s.Name))
		}
		for kind := range s.ByKind {
			if len(kind) > names.Longest {
				t.Errorf("a kind of %d bytes", len(kind))
			}
		}
	}
	if keys != 3 {
		t.Errorf("%d limiters for 3 keys", keys)
	}
}
