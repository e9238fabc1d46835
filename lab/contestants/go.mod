module github.com/spillway-go/spillway/lab/contestants

go 1.26.0

replace (
	github.com/spillway-go/spillway => ../..
	github.com/spillway-go/spillway/examples/patientapi => ../../examples/patientapi
	github.com/spillway-go/spillway/lab => ..
	github.com/spillway-go/spillway/routegin => ../../routegin
)

require (
	github.com/sourcegraph/conc v0.3.0
	github.com/spillway-go/spillway v0.0.0
	github.com/spillway-go/spillway/lab v0.0.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/alecthomas/kong v1.17.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
