package objectsize

import (
	"slices"
	"unsafe"
)

// classes are the sizes of small allocations of the Go runtime (internal/runtime/gc/sizeclasses.go). Larger ones are
// whole pages.
var classes = []int{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512,
	576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5120, 5376,
	6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576,
	27264, 28672, 32768,
}

const (
	word       = int(unsafe.Sizeof(uintptr(0)))
	pageSize   = 8192
	tiny       = 16              // smaller allocations without pointers share one of this size
	headerFrom = 8 * word * word // larger allocations with pointers have a header
	header     = 8
	small      = 1024
)

// smallClasses are the classes of sizes up to small, by the size in words.
var smallClasses = func() (sizes [small/8 + 1]uint16) {
	for words := range sizes {
		n, _ := slices.BinarySearch(classes, 8*words)
		sizes[words] = uint16(classes[n]) //nolint:gosec // it is small
	}
	return sizes
}()

// class returns the size of an allocation of at least one byte.
func class(size int) int {
	switch {
	case size <= small:
		return int(smallClasses[(size+7)/8])
	case size <= classes[len(classes)-1]:
		n, _ := slices.BinarySearch(classes, size)
		return classes[n]
	}
	return (size + pageSize - 1) / pageSize * pageSize
}

// withoutPointers returns the size of an allocation of size bytes that has no pointers.
func withoutPointers(size int) int {
	if size < tiny {
		return size
	}
	return class(size)
}

// withPointers returns the size of an allocation of size bytes that has pointers.
func withPointers(size int) int {
	switch {
	case size == 0:
		return 0
	case size > headerFrom:
		return class(size + header)
	}
	return class(size)
}

const (
	mapHead   = int64(16 + 4*word) // the head of a map
	groupOf   = 8                  // slots in a group, beside 8 bytes of control
	tableOf   = 1024
	tableHead = 6 * word
)

// mapSize returns the size of a map of n entries of slot bytes each, if it was made for n entries. A server may report so many objects that the
// size does not fit into an int of 32 bits.
func mapSize(n, slot int) int64 {
	switch {
	case n == 0:
		return mapHead
	case n <= groupOf:
		return mapHead + int64(withPointers(groupOf+groupOf*slot))
	}
	slots := int64(2 * groupOf)
	for slots*7/8 < int64(n) {
		slots *= 2
	}
	tables := max(1, slots/tableOf)
	groups := int(slots / tables / groupOf)
	return mapHead + int64(withPointers(word*int(tables))) + tables*int64(tableHead+withPointers(groups*(groupOf+groupOf*slot)))
}
