//go:build !goexperiment.jsonv2

package route

import (
	"encoding/json"
	"net/http"
)

// decodeByHand decodes as a careful author would.
func decodeByHand(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func answerByHand(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		http.Error(w, "internal", http.StatusInternalServerError)
	}
}
