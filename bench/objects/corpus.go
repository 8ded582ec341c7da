package objects

import (
	"context"
	"encoding/json"
	"fmt"
)

// Encode returns the JSON of the first n objects of kind, each on one line and with sorted
// keys. It stops when ctx ends.
func Encode(ctx context.Context, kind Kind, n int) ([][]byte, error) {
	all := make([][]byte, n)
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if all[i], err = json.Marshal(kind.Object(i)); err != nil {
			return nil, fmt.Errorf("object %d of %s: %w", i, kind.Name, err)
		}
	}
	return all, nil
}
