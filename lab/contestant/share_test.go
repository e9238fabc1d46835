package contestant_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/lab/contestant"
)

func TestSharedMemoryIsOneForAllThatMapIt(t *testing.T) {
	type counter struct{ a, b atomic.Int64 }
	path := filepath.Join(t.TempDir(), "counter")
	one, end, err := contestant.Share[counter](path)
	if err != nil {
		t.Skip(err)
	}
	defer end()
	other, end2, err := contestant.Share[counter](path)
	if err != nil {
		t.Fatal(err)
	}
	defer end2()
	one.a.Add(1)
	other.a.Add(2)
	other.b.Store(5)
	if one.a.Load() != 3 || one.b.Load() != 5 {
		t.Errorf("%d, %d", one.a.Load(), one.b.Load())
	}
	if _, _, err := contestant.Share[counter](filepath.Join(path, "below a file")); err == nil {
		t.Error("mapped")
	}
}
