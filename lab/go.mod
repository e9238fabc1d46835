module github.com/spillway-go/spillway/lab

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
	github.com/spillway-go/spillway v0.0.0
	github.com/spillway-go/spillway/load v0.0.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect

replace (
	github.com/spillway-go/spillway => ..
	github.com/spillway-go/spillway/examples/patientapi => ../examples/patientapi
	github.com/spillway-go/spillway/load => ../load
	github.com/spillway-go/spillway/metricsprom => ../metricsprom
)

// Its zip cannot be had everywhere, and only tests of tests would use it.
exclude golang.org/x/exp v0.0.0-20261011100332-faecfb24eb49
