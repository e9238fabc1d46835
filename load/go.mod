module github.com/spillway-go/spillway/load

go 1.26.0

require (
	github.com/spillway-go/spillway v0.0.0
	golang.org/x/sys v0.49.0
)

replace github.com/spillway-go/spillway => ..
