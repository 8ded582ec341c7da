package trial

import (
	"runtime"

	"github.com/gvrkit/gvrkit/bench/usage"
)

// memory returns what this process has.
func memory() Memory {
	heap, stacks := usage.LiveMemory()
	return Memory{Heap: heap, Stacks: stacks, Goroutines: runtime.NumGoroutine()}
}

// Since returns what has come after earlier.
func (m Memory) Since(earlier Memory) Memory {
	return Memory{Heap: m.Heap - earlier.Heap, Stacks: m.Stacks - earlier.Stacks, Goroutines: m.Goroutines - earlier.Goroutines}
}
