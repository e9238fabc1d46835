// Package judge decides whether a claim holds, and says how sure it is.
package judge
