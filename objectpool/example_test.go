package objectpool_test

import (
	"fmt"

	"github.com/spillway-go/spillway/objectpool"
)

type response struct{ body []byte }

// Clear must clear the memory behind the slice as well. It may keep the slice's capacity.
func ExampleNew() {
	pool := objectpool.New(objectpool.Config[response]{
		New: func() *response { return &response{body: make([]byte, 0, 64<<10)} },
		Clear: func(r *response) {
			clear(r.body[:cap(r.body)])
			r.body = r.body[:0]
		},
	})
	r := pool.Get()
	r.body = append(r.body, "for one reader only"...)
	fmt.Println(len(r.body))
	pool.Put(r) // only when no code uses r any more
	fmt.Println(len(pool.Get().body))
	// Output:
	// 19
	// 0
}
