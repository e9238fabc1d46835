module github.com/spillway-go/spillway/metricsprom

go 1.26.0

require github.com/spillway-go/spillway v0.0.0

replace github.com/spillway-go/spillway => ..
