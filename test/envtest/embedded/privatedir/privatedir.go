// Package privatedir creates temporary directories for a Unix domain socket that only the
// current user may open. It does not depend on the server on the socket.
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
	// maxSocketPath is the length of a socket's path that all systems with Unix domain
	// sockets allow. Linux allows 107 bytes, and macOS 103.
	maxSocketPath = 103
)

// New creates a directory that only the current user may enter (mode 0700). The caller must
// remove it. It is in the system's directory for temporary files, or in /tmp if the path of a
// socket would be too long.
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

// Check returns an error unless dir is like a directory of New: only its owner may enter it,
// and the path of a socket in it is short enough.
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
	// The umask may have removed permissions of the owner.
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}
