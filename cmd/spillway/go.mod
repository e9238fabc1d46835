module github.com/spillway-go/spillway/cmd/spillway

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/spillway-go/spillway v0.0.0
	github.com/spillway-go/spillway/lab v0.0.0
	github.com/spillway-go/spillway/load v0.0.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

require (
	github.com/prometheus/client_golang v1.25.0
	github.com/spillway-go/spillway/metricsprom v0.0.0
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
)

replace (
	github.com/spillway-go/spillway => ../..
	github.com/spillway-go/spillway/lab => ../../lab
	github.com/spillway-go/spillway/load => ../../load
)

// Its zip cannot be had everywhere, and only tests of tests would use it.
exclude golang.org/x/exp v0.0.0-20261011100332-faecfb24eb49

replace github.com/spillway-go/spillway/metricsprom => ../../metricsprom
