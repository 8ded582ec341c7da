package report

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Environment is where and with what results came about.
type Environment struct {
	Time    time.Time `json:"time"`
	Command string    `json:"command"`
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	GOOS    string    `json:"goos"`
	GOARCH  string    `json:"goarch"`
	Go      string    `json:"go"`
	// Modules are the versions of what is compared.
	Modules map[string]string `json:"modules"`
}

// compared are the modules whose versions matter.
var compared = []string{
	"k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime",
}

// CurrentEnvironment returns that of this process: command, which was called with args.
func CurrentEnvironment(command string, args []string) Environment {
	e := Environment{
		Time: time.Now().UTC().Truncate(time.Second), Command: strings.Join(append([]string{command}, args...), " "),
		CPU: cpuModel(), Cores: runtime.NumCPU(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, Go: runtime.Version(),
		Modules: map[string]string{},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return e
	}
	for _, dep := range info.Deps {
		for _, path := range compared {
			if dep.Path == path {
				e.Modules[path] = dep.Version
			}
		}
	}
	return e
}

// cpuModel returns what Linux calls the processor, or nothing.
func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
