package routeyaml_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/spillway-go/spillway/examples/frameworks/routeyaml"
	"github.com/spillway-go/spillway/route"
)

// A route accepts YAML as well as JSON, with the same tags and rules.
func ExampleJSON() {
	type create struct {
		Name string `json:"name" validate:"required"`
		Age  int    `json:"age"`
	}
	api := route.NewMux(route.Config{Codecs: map[string]func([]byte) ([]byte, error){routeyaml.MediaType: routeyaml.JSON}})
	err := api.Add(route.New("POST", "/patients", func(_ context.Context, req create) (route.Empty, error) {
		fmt.Println(req.Name, req.Age)
		return route.Empty{}, nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}

	r := httptest.NewRequest("POST", "/patients", strings.NewReader("name: Ada\nage: 36\n"))
	r.Header.Set("Content-Type", routeyaml.MediaType)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output:
	// Ada 36
	// 204
}
