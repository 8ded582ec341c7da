package cluster

import (
	"github.com/klauspost/compress/zstd"
)

// Facts are how large what a cluster serves is.
type Facts struct {
	Groups        int `json:"groups"`
	GroupVersions int `json:"groupVersions"`
	// Types counts each version of a resource.
	Types int `json:"types"`
	CRDs  int `json:"crds"`
	// BytesPerCRD and CompressedBytesPerCRD are the mean size of a CRD: its JSON, and
	// the JSON of all CRDs compressed as one text by zstd, divided by their number.
	BytesPerCRD           int `json:"bytesPerCRD"`
	CompressedBytesPerCRD int `json:"compressedBytesPerCRD"`
	// DocumentBytes is how much /api and /apis have together in the aggregated format.
	DocumentBytes int `json:"documentBytes"`
}

// Facts returns how large everything is at present.
func (c *Cluster) Facts() (Facts, error) {
	c.mu.Lock()
	types := c.types()
	c.mu.Unlock()
	f := Facts{Types: len(types)}
	for _, g := range groupsOf(types) {
		f.Groups++
		f.GroupVersions += len(g.versions)
	}
	for _, document := range c.current.Load().aggregated {
		f.DocumentBytes += len(document.body)
	}
	items, _, _, err := c.crds.page(0, 0, 0)
	if err != nil || len(items) == 0 {
		return f, err
	}
	var compressed counter
	w, err := zstd.NewWriter(&compressed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return f, err
	}
	for _, item := range items {
		f.BytesPerCRD += len(item.texts[whole])
		if _, err := w.Write(item.texts[whole]); err != nil {
			return f, err
		}
	}
	if err := w.Close(); err != nil {
		return f, err
	}
	f.CRDs = len(items)
	f.BytesPerCRD /= len(items)
	f.CompressedBytesPerCRD = int(compressed) / len(items)
	return f, nil
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
