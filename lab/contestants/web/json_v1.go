//go:build !goexperiment.jsonv2

package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spillway-go/spillway/lab/routes"
)

// thisBuild is the JSON package of the hand-written contestants, and of all others.
const thisBuild = routes.StdJSON

// decodeByHand reads one document without unknown members and nothing after it.
func decodeByHand(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("there is more than one document in the body")
	}
	return err
}

func encodeByHand(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
