module github.com/spillway-go/spillway/routeyaml

go 1.26.0

require (
	github.com/spillway-go/spillway v0.0.0
	go.yaml.in/yaml/v3 v3.0.4
)

replace github.com/spillway-go/spillway => ..
