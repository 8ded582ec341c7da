// Package usage says what this process has used.
package usage

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// CPU returns the CPU time that this process has had.
func CPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// RSS returns the memory that this process has now, and the most that it has had.
// Getrusage is of no use for that on Linux: a child begins with its parent's peak.
func RSS() (current, peak int64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, os.ErrNotExist) {
		var usage syscall.Rusage
		err = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
		return 0, usage.Maxrss, err
	}
	for line := range bytes.Lines(status) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kilobytes); n == 1 {
			peak = kilobytes << 10
		}
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %d kB", &kilobytes); n == 1 {
			current = kilobytes << 10
		}
	}
	return current, peak, err
}

// LiveHeap returns the size of what is reachable.
func LiveHeap() int64 {
	heap, _ := LiveMemory()
	return heap
}

// LiveMemory returns the size of what is reachable, and of the stacks of goroutines once
// they rest: a collection halves one at most, and a process that idles comes to that by
// itself in some minutes.
func LiveMemory() (heap, stacks int64) {
	var stats runtime.MemStats
	before := uint64(math.MaxUint64)
	for n := range settling {
		runtime.GC() // what finalizers and pools held on to goes the second time
		runtime.ReadMemStats(&stats)
		if n > 0 && stats.StackInuse >= before {
			break
		}
		before = stats.StackInuse
	}
	return int64(stats.HeapAlloc), int64(stats.StackInuse) //nolint:gosec // sizes
}

// settling is how many collections at most it takes stacks to come to rest.
const settling = 8

// Collection returns the CPU time of one full garbage collection: the median of
// three.
func Collection() (time.Duration, error) {
	var times []time.Duration
	for range 3 {
		before, err := CPU()
		if err != nil {
			return 0, err
		}
		runtime.GC()
		after, err := CPU()
		if err != nil {
			return 0, err
		}
		times = append(times, after-before)
	}
	slices.Sort(times)
	return times[1], nil
}
