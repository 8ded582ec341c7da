package browser_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// chromium is a browser without a window.
type chromium struct {
	t    *testing.T
	path string
}

// newChromium returns the installed browser. The test is skipped if there is none.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROME"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return &chromium{t, path}
		}
	}
	t.Skip("There is no browser: install chromium, or name one with CHROME.")
	return nil
}

// run opens url with args, and returns the output. It uses a temporary profile and home directory.
func (c *chromium) run(url string, args ...string) string {
	c.t.Helper()
	home := c.t.TempDir()
	ctx, cancel := context.WithTimeout(c.t.Context(), 90*time.Second)
	defer cancel()
	all := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--no-proxy-server", "--user-data-dir=" + home,
	}, args...)
	cmd := exec.CommandContext(ctx, c.path, append(all, url)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%s: %v\n%s", c.path, err, stderr.String())
	}
	return stdout.String()
}

// dom returns the document at url after some virtual time of the page. Virtual time runs as fast as
// possible, and stops during requests.
func (c *chromium) dom(url string, after time.Duration) string {
	c.t.Helper()
	return c.run(url, "--virtual-time-budget="+milliseconds(after), "--dump-dom")
}
