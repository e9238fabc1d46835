module github.com/spillway-go/spillway/lab

go 1.26.0

require (
	github.com/spillway-go/spillway v0.0.0
	github.com/spillway-go/spillway/examples/patientapi v0.0.0
	github.com/spillway-go/spillway/metricsprom v0.0.0
)

replace (
	github.com/spillway-go/spillway => ..
	github.com/spillway-go/spillway/examples/patientapi => ../examples/patientapi
	github.com/spillway-go/spillway/metricsprom => ../metricsprom
)
