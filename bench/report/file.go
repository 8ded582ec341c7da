package report

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteFile writes results to a file, for [ReadFile].
func WriteFile(path string, results any) error {
	text, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// ReadFile reads results from a file.
func ReadFile[T any](path string) (*T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	results := new(T)
	if err := json.Unmarshal(text, results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}
