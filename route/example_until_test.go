package route_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/spillway-go/spillway/route"
)

// Shutdown waits for all requests. An endless stream ends when the service says so.
func ExampleRoute_Until() {
	streams, stopStreams := context.WithCancel(context.Background())
	events := make(chan string, 1)
	m := route.NewMux(route.Config{})
	err := m.Add(route.New("GET", "/events", func(ctx context.Context, _ struct{}) (route.Stream, error) {
		return route.Stream{ContentType: "text/event-stream", Write: func(w io.Writer) error {
			for {
				select {
				case event := <-events:
					if _, err := fmt.Fprintf(w, "data: %s\n\n", event); err != nil {
						return err
					}
				case <-ctx.Done():
					return nil // the stream is complete; an error would abort the connection
				}
			}
		}}, nil
	}).Until(streams))
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(m)
	events <- "patient 7"
	resp, err := server.Client().Get(server.URL + "/events")
	if err != nil {
		panic(err)
	}
	stopStreams()
	fmt.Println(server.Config.Shutdown(context.Background()))
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%q %v\n", body, err)
	// Output:
	// <nil>
	// "data: patient 7\n\n" <nil>
}
