module github.com/spillway-go/spillway/lab/contestants

go 1.26.0

replace (
	github.com/spillway-go/spillway => ../..
	github.com/spillway-go/spillway/examples/patientapi => ../../examples/patientapi
	github.com/spillway-go/spillway/lab => ..
	github.com/spillway-go/spillway/routegin => ../../routegin
)
