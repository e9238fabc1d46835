//go:build asan && cgo

package objectpool

/*
#include <stdint.h>
#include <sanitizer/asan_interface.h>

// Addresses come as numbers: Go checks pointers for what lies behind them.
static void poison(uintptr_t p, size_t n) { __asan_poison_memory_region((void *)p, n); }
static void unpoison(uintptr_t p, size_t n) { __asan_unpoison_memory_region((void *)p, n); }
*/
import "C"

import "unsafe"

const asanEnabled = true

// poison makes any access to n bytes an error, until unpoison or until the memory is allocated
// again. The runtime and its garbage collector may still access the bytes.
func poison(p unsafe.Pointer, n uintptr)   { C.poison(C.uintptr_t(uintptr(p)), C.size_t(n)) }
func unpoison(p unsafe.Pointer, n uintptr) { C.unpoison(C.uintptr_t(uintptr(p)), C.size_t(n)) }
