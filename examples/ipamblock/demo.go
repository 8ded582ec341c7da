package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// demoBlocks are the blocks of the demonstration. Their addresses are reserved for
// documentation, so that a real cluster does not use them.
var demoBlocks = []struct{ cidr, node string }{
	{"192.0.2.0/28", "node-a"},
	{"198.51.100.0/28", "node-b"},
	{"203.0.113.0/28", "node-c"},
}

const (
	demoSize = 16
	// demoPace is the time between two writes, slow enough for a reader.
	demoPace = 150 * time.Millisecond
)

// demo creates blocks, allocates and frees addresses, and deletes one block. With cleanUp, it
// deletes all of its blocks at the end.
type demo struct {
	blocks  dynamic.ResourceInterface
	cleanUp bool
}

// run writes the blocks. If ctx ends, it returns early with the error of ctx.
func (d *demo) run(ctx context.Context) (err error) {
	for _, b := range demoBlocks {
		if _, err := d.blocks.Create(ctx, newBlock(b.cidr, b.node, demoSize), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create block %s: %w", b.cidr, err)
		}
		if d.cleanUp {
			defer func() { err = d.remove(ctx, b.cidr, err) }()
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	first, second, last := demoBlocks[0].cidr, demoBlocks[1].cidr, demoBlocks[len(demoBlocks)-1].cidr
	for i := range 5 {
		pod := fmt.Sprintf("pod-%d", i)
		if err := d.change(ctx, first, func(obj *unstructured.Unstructured) error { return allocate(obj, pod) }); err != nil {
			return err
		}
	}
	for range 2 {
		if err := d.change(ctx, first, release); err != nil {
			return err
		}
	}
	if err := d.change(ctx, second, fill); err != nil {
		return err
	}
	if err := d.blocks.Delete(ctx, blockName(last), metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete block %s: %w", last, err)
	}
	return nil
}

// wanted reports whether all events of run have been counted, including the deletions of
// cleanUp.
func (d *demo) wanted(c counts) bool {
	deleted := 1
	if d.cleanUp {
		deleted = len(demoBlocks)
	}
	return c.Added >= len(demoBlocks) && c.Updated >= 8 && c.Deleted >= deleted
}

func fill(obj *unstructured.Unstructured) error {
	for i := range demoSize {
		if err := allocate(obj, fmt.Sprintf("batch-%d", i)); err != nil {
			return err
		}
	}
	return nil
}

// change updates the block of cidr. It changes an object from the server, not a cached object,
// which would have to be copied first.
func (d *demo) change(ctx context.Context, cidr string, edit func(*unstructured.Unstructured) error) error {
	obj, err := d.blocks.Get(ctx, blockName(cidr), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read block %s: %w", cidr, err)
	}
	if err := edit(obj); err != nil {
		return err
	}
	if _, err := d.blocks.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update block %s: %w", cidr, err)
	}
	return pause(ctx)
}

// remove deletes the block of cidr if it exists, also after the end of ctx. It returns before if
// that is an error, and otherwise its own error.
func (d *demo) remove(ctx context.Context, cidr string, before error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := d.blocks.Delete(ctx, blockName(cidr), metav1.DeleteOptions{})
	if before != nil || err == nil || apierrors.IsNotFound(err) {
		return before
	}
	return fmt.Errorf("clean up block %s: %w", cidr, err)
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(demoPace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
