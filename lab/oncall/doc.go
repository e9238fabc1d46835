// Package oncall opens the debug page of package admissionhttp in a real browser, as
// an engineer on call would: on a phone, in the dark, while work is refused.
package oncall
