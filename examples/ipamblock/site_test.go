package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestSite_APortWithoutAHostIsOnLocalhost(t *testing.T) {
	for given, want := range map[string]string{
		":0": "127.0.0.1:0", "0": "127.0.0.1:0", "8080": "127.0.0.1:8080", "localhost:80": "localhost:80", "0.0.0.0:80": "0.0.0.0:80", "[::1]:80": "[::1]:80",
	} {
		if got, err := siteAddress(given); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"host:", "::1", "host", ":http", ":70000", ":-1"} {
		if got, err := siteAddress(given); err == nil {
			t.Errorf("%q is accepted as %q", given, got)
		}
	}
}

// fetch returns the page at url, as a browser gets it.
func fetch(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // the body has been read
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return string(body)
}

// startWithPages starts the program and returns its output, its progress, and the address of its
// pages.
func startWithPages(t *testing.T, cmd *exec.Cmd) (lines, progress *bufio.Scanner, url string) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`informers at (http://127\.0\.0\.1:\d+/), blocks at (http://127\.0\.0\.1:\d+/blocks)$`)
	for progress = bufio.NewScanner(stderr); url == "" && progress.Scan(); {
		if found := address.FindStringSubmatch(progress.Text()); found != nil {
			url = found[1]
		}
	}
	return bufio.NewScanner(stdout), progress, url
}

func TestProgram_ServesPagesUntilItEnds(t *testing.T) {
	t.Parallel()
	cmd := command(t, "--http", ":0", "--duration", "5m")
	lines, progress, url := startWithPages(t, cmd)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "DELETED") { // the last event of the demonstration
	}
	for page, parts := range map[string][]string{
		"": {"ipamblocks.v1.crd.projectcalico.org", "Synced", `<td data-label="Objects" class="n">2</td>`},
		"informers/ipamblocks.v1.crd.projectcalico.org": {"is requested by 1 lease without a name", "<dt>Namespace</dt><dd>none: cluster-scoped</dd>"},
		"blocks": {"2 blocks, 1 of them full; 19 of 32 addresses used (59 %).", "<b>192.0.2.0/28</b> <span>3/16, 18 %, low</span>", "<b>198.51.100.0/28</b> <span>16/16, 100 %, full</span>"},
	} {
		got := fetch(t, url+page)
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("no %s on page %q:\n%s", part, page, got)
			}
		}
	}
	if !progress.Scan() || progress.Text() != "ipamblock: watching for 5m0s; Ctrl-C ends it" {
		t.Errorf("progress after the demonstration: %q", progress.Text())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // until it has ended
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}
