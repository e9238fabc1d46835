package main

import (
	"net/http"
	"testing"

	"github.com/spillway-go/spillway/examples/frameworks/internal/exercise"
)

func TestShedsAndRecovers(t *testing.T) { exercise.HTTP(t, handler, http.StatusInternalServerError) }
