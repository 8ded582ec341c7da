package cluster

import (
	"context"

	"github.com/gvrkit/gvrkit/bench/child"
)

// Role is the role of a process that is a cluster.
const Role = "cluster"

// answer is what such a process says when it serves.
type answer struct {
	Host  string `json:"host"`
	Facts Facts  `json:"facts"`
}

// Process is a cluster in a process of its own.
type Process struct {
	Admin

	Facts   Facts
	process *child.Process
}

// Start starts a cluster of that size in a process of its own. ctx kills it.
func Start(ctx context.Context, size Size) (*Process, error) {
	process, err := child.Start(ctx, Role, nil, size)
	if err != nil {
		return nil, err
	}
	var a answer
	if err := process.Read(&a); err != nil {
		return nil, err
	}
	return &Process{Admin: Admin{Host: a.Host}, Facts: a.Facts, process: process}, nil
}

// Stop ends the process.
func (p *Process) Stop() error { return p.process.Stop() }

// RunProcess makes this process a cluster, until its parent wants no more.
func RunProcess(ctx context.Context) error {
	var size Size
	ctx, err := child.Orders(ctx, &size)
	if err != nil {
		return err
	}
	c, err := New(size)
	if err != nil {
		return err
	}
	facts, err := c.Facts()
	if err != nil {
		return err
	}
	return child.Serve(ctx, c, func(host string) any { return answer{Host: host, Facts: facts} })
}
