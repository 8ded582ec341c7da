package objects

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Corpus is the first objects of a kind, encoded.
type Corpus struct {
	Kind Kind
	// Objects holds each object's JSON, on one line and with sorted keys.
	Objects [][]byte
}

// NewCorpus encodes the first n objects of kind. It gives up when ctx ends.
func NewCorpus(ctx context.Context, kind Kind, n int) (*Corpus, error) {
	c := &Corpus{Kind: kind, Objects: make([][]byte, n)}
	for i := range c.Objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := json.Marshal(kind.Object(i))
		if err != nil {
			return nil, fmt.Errorf("object %d of %s: %w", i, kind.Name, err)
		}
		c.Objects[i] = text
	}
	return c, nil
}

// Bytes returns the length of all objects together.
func (c *Corpus) Bytes() int64 {
	var n int64
	for _, text := range c.Objects {
		n += int64(len(text))
	}
	return n
}

// CompressedBytes returns the length of all objects together when compressed as one
// text by zstd, which tells how much they differ.
func (c *Corpus) CompressedBytes() (int64, error) {
	var n counter
	w, err := zstd.NewWriter(&n, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	for _, text := range c.Objects {
		if _, err := w.Write(text); err != nil {
			return 0, err
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return int64(n), nil
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
