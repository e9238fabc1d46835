// Package migrate has nothing but examples: the code that the pages of docs/migrate
// end with, and that of the first page of the README.
package migrate
