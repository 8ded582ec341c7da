package inprocess_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/inprocess"
)

// etcd requires no credentials: a user who can connect to it can do everything.
func TestServer_OtherUsersCannotConnectToEtcd(t *testing.T) {
	for name, opts := range map[string]inprocess.Options{
		"temporary data directory":                                  {},
		"data directory of the caller, which other users may enter": {DataDir: enterable(t)},
	} {
		t.Run(name, func(t *testing.T) {
			server := startWith(t, opts)
			api, err := url.Parse(server.Config().Host)
			if err != nil {
				t.Fatal(err)
			}
			tcp, unix := listening(t)
			if want := []string{api.Port()}; !slices.Equal(tcp, want) {
				t.Errorf("TCP ports that this process listens on: %v, want only that of the API server: %v", tcp, want)
			}
			if len(unix) != 1 {
				t.Fatalf("Unix domain sockets that this process listens on: %v, want only that of etcd", unix)
			}
			info, err := os.Stat(filepath.Dir(unix[0]))
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode(); got != os.ModeDir|0o700 {
				t.Errorf("mode of the directory of %s: %v, want drwx------", unix[0], got)
			}
		})
	}
}

func TestStart_RejectsATemporaryDirectoryThatOtherUsersMayEnter(t *testing.T) {
	_, err := inprocess.Start(t.Context(), inprocess.Options{TempDir: enterable(t)})
	if err == nil || !strings.Contains(err.Error(), "0755") {
		t.Errorf("Start: %v", err)
	}
}

// enterable returns a directory that all users may enter.
func enterable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listening returns the TCP ports and the paths of the Unix domain sockets that this
// process listens on, from /proc.
func listening(t *testing.T) (tcp, unix []string) {
	t.Helper()
	mine := sockets(t)
	for _, table := range []string{"tcp", "tcp6"} {
		for _, f := range lines(t, "/proc/self/net/"+table) {
			const listen = "0A"
			if len(f) < 10 || f[3] != listen || !mine[f[9]] {
				continue
			}
			port, err := strconv.ParseUint(f[1][strings.LastIndex(f[1], ":")+1:], 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			tcp = append(tcp, strconv.FormatUint(port, 10))
		}
	}
	for _, f := range lines(t, "/proc/self/net/unix") {
		const acceptsConnections = "00010000"
		if len(f) > 7 && f[3] == acceptsConnections && mine[f[6]] {
			unix = append(unix, f[7])
		}
	}
	return tcp, unix
}

// sockets returns the inodes of this process's sockets.
func sockets(t *testing.T) map[string]bool {
	t.Helper()
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		var inode string
		if n, _ := fmt.Sscanf(target, "socket:[%s", &inode); err == nil && n == 1 {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes
}

func lines(t *testing.T, path string) [][]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(string(content)) {
		all = append(all, strings.Fields(line))
	}
	return all
}
