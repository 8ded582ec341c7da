// Package privatedir creates temporary directories for a Unix domain socket that only
// the current user may open. It knows nothing of the server on the socket.
package privatedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

const (
	// socketName is the name of the socket in its directory.
	socketName = "etcd.sock"
	// maxSocketPath is the length of the longest path that a socket can have on
	// each system that has Unix domain sockets. Linux allows 107 bytes, macOS 103.
	maxSocketPath = 103
)

// New makes a directory that only the current user may enter (mode 0700). The
// caller removes it. It is in the system's directory for temporary files, or in
// /tmp if paths in that are too long for a socket.
func New() (string, error) {
	dir, err := make0700(os.TempDir())
	if err != nil || len(Socket(dir)) <= maxSocketPath || runtime.GOOS == "windows" {
		return dir, err
	}
	if err := os.Remove(dir); err != nil {
		return "", err
	}
	return make0700("/tmp")
}

// Socket returns the path of the socket in dir.
func Socket(dir string) string { return filepath.Join(dir, socketName) }

// Check returns an error unless dir is a directory that New could have made: its
// owner alone may enter it, and the path of a socket in it is short enough.
func Check(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("other users may enter %s: its mode is %#o, want 0700", dir, mode)
	}
	if path := Socket(dir); len(path) > maxSocketPath && runtime.GOOS != "windows" {
		return fmt.Errorf("%s is too long for the path of a Unix domain socket", path)
	}
	return nil
}

func make0700(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "gvrkit-apiserver-")
	if err != nil {
		return "", err
	}
	// The umask may have taken permissions away; it can't have added any.
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}
