package privatedir_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/privatedir"
)

func TestNew_OnlyItsOwnerMayEnter(t *testing.T) {
	dir := newDir(t)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != os.ModeDir|0o700 {
		t.Errorf("mode of %s: %v, want drwx------", dir, got)
	}
	if err := privatedir.Check(dir); err != nil {
		t.Errorf("Check: %v", err)
	}
}

func TestNew_UsesTmpIfTheTemporaryDirectoryHasALongPath(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	socket, err := net.Listen("unix", privatedir.Socket(newDir(t))) //nolint:noctx // a local socket does not block
	if err != nil {
		t.Fatal(err)
	}
	if err := socket.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("left in the long directory: %v, %v", left, err)
	}
}

func TestCheck_RefusesWhatOthersMayEnter(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(open, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		open:                           "0755",
		file:                           "not a directory",
		long:                           "too long",
		filepath.Join(open, "nothing"): "no such file",
	} {
		if err := privatedir.Check(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%s): %v, want %q", path, err, want)
		}
	}
}

func newDir(t *testing.T) string {
	t.Helper()
	dir, err := privatedir.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
