// Package usage measures the CPU time, the memory and the requests of this process.
package usage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// CPU returns the CPU time of this process, user and system.
func CPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic("usage: bug: getrusage: " + err.Error()) // it fails only for a wrong argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// PeakRSS returns the peak resident set size of this process, or 0 without /proc. Getrusage is not
// used because a child process begins with the peak of its parent.
func PeakRSS() (bytes int64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	_, invalid := fmt.Sscanf(peak, "%d kB", &bytes)
	return bytes << 10, errors.Join(err, invalid)
}

// LiveMemory returns the size of reachable memory, and of goroutine stacks after they have shrunk:
// one garbage collection at most halves a stack.
func LiveMemory() (heap, stacks int64) {
	const collections = 8 // until stacks no longer shrink
	var stats runtime.MemStats
	before := uint64(math.MaxUint64)
	for n := range collections {
		runtime.GC() // the second one frees memory of finalizers and pools
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
