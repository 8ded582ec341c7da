// Package trial measures in a process of its own how one program starts: from the making of
// its client until all its informers have synced, and until it asks for nothing more.
package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/measure"
)

// Job says what is to be measured.
type Job struct {
	System string         `json:"system"`
	Server measure.Server `json:"server"`
	// Types is how many types are watched, and Objects how many objects each of them has.
	Types   int `json:"types"`
	Objects int `json:"objects"`
	// Rest is how long a program must not have asked or read anything to be at rest.
	Rest time.Duration `json:"restNanos"`
}

// Figures are what was measured.
type Figures struct {
	// Returned is when the system's own wait for the informers returned, and Synced when the
	// last of them had synced. CPU is that of the process.
	Returned    time.Duration `json:"returnedNanos"`
	Synced      time.Duration `json:"syncedNanos"`
	ReturnedCPU time.Duration `json:"returnedCPUNanos"`
	// RestCPU is that until the program was at rest, as are all figures below.
	RestCPU time.Duration `json:"restCPUNanos"`
	// Before is the requests that had been sent when the first one for objects was.
	Before int64 `json:"requestsBeforeFirstList"`
	// Documents, Definitions and Objects are the requests for documents of discovery, for
	// CRDs and APIServices or their metadata, and for objects.
	Documents   int64 `json:"documentRequests"`
	Definitions int64 `json:"definitionRequests"`
	Objects     int64 `json:"objectRequests"`
	// Bytes are those of the answers to the first two, decompressed.
	Bytes int64 `json:"discoveryBytes"`
}

// Role is the role of a process that measures one program.
const Role = "trial"

// patience is how long one trial may take.
func patience(Job) time.Duration { return 3 * time.Minute }

// RunProcess makes this process measure what its parent asks for.
func RunProcess(ctx context.Context) error { return child.Work(ctx, patience, Run) }

// InProcess does job in a process of its own, which ctx kills.
func InProcess(ctx context.Context, job Job) (Figures, error) {
	figures, err := child.Do[Figures](ctx, Role, job)
	if err != nil {
		return figures, fmt.Errorf("%s, %d types: %w", job.System, job.Types, err)
	}
	return figures, nil
}
