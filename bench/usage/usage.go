// Package usage measures the CPU time and the memory of this process.
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

// CPU returns the CPU time of this process, user and system.
func CPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic("usage: bug: getrusage: " + err.Error()) // it has no other error than a wrong argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// RSS returns the present memory of this process, and its peak. Getrusage does not tell it on
// Linux: a child begins with its parent's peak.
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

// LiveMemory returns the size of what is reachable, and of the stacks of goroutines once they
// have shrunk: a collection halves a stack at most.
func LiveMemory() (heap, stacks int64) {
	const collections = 8 // until stacks no longer shrink
	var stats runtime.MemStats
	before := uint64(math.MaxUint64)
	for n := range collections {
		runtime.GC() // the second one frees what finalizers and pools had kept
		runtime.ReadMemStats(&stats)
		if n > 0 && stats.StackInuse >= before {
			break
		}
		before = stats.StackInuse
	}
	return int64(stats.HeapAlloc), int64(stats.StackInuse) //nolint:gosec // sizes
}

// Collection returns the CPU time of one full garbage collection: the median of three.
func Collection() time.Duration {
	var times []time.Duration
	for range 3 {
		before := CPU()
		runtime.GC()
		times = append(times, CPU()-before)
	}
	slices.Sort(times)
	return times[1]
}
