//go:build !goexperiment.jsonv2

package main

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/spillway-go/spillway/lab/routes"
)

// thisBuild is the JSON package of the hand-written contestants, and of all others.
const thisBuild = routes.StdJSON

// decodeByHand reads one document without unknown members and nothing after it.
func decodeByHand(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errMore
	}
	return nil
}

func answerByHand(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone
}
