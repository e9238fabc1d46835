package main

import (
	"testing"

	"github.com/spillway-go/spillway/examples/frameworks/internal/exercise"
)

func TestShedsAndRecovers(t *testing.T) { exercise.HTTP(t, handler, exercise.Cut) }
