// Package layers tests the rules that the compiler does not check, over the source
// of every module:
//
//   - imports point down: a package, its tests included, imports only packages of
//     a strictly lower layer;
//   - the root module imports the standard library and itself, and requires
//     nothing;
//   - the other modules use its public packages only;
//   - an adapter depends on one third-party library;
//   - every package has a comment;
//   - names and comments use plain words, and a word of the glossary names one type;
//   - the code in the README and in pages for users is part of an example that runs.
//
// A new package gets its place in the table at the top of layers_test.go.
package layers
