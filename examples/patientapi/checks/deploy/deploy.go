// Package deploy checks the manifests that run the patient API in Kubernetes, the kustomize
// overlays in the folder examples/patientapi/deploy. Its tests render them, check every
// object against the schemas that Kubernetes publishes, and compare what they say with what
// the service is.
package deploy
