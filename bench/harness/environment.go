package harness

import (
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Environment is the machine and the software that results were measured with.
type Environment struct {
	Time    time.Time `json:"time"`
	Command string    `json:"command"`
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	GOOS    string    `json:"goos"`
	GOARCH  string    `json:"goarch"`
	Go      string    `json:"go"`
	// Modules are the versions of the modules that are compared.
	Modules map[string]string `json:"modules"`
}

// CurrentEnvironment returns the environment of this process. It has no CPU where there is no
// /proc/cpuinfo.
func CurrentEnvironment() Environment {
	e := Environment{
		Time: time.Now().UTC().Truncate(time.Second), Command: strings.Join(append([]string{"go run ./bench"}, os.Args[1:]...), " "),
		Cores: runtime.NumCPU(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, Go: runtime.Version(), Modules: map[string]string{},
	}
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	if model := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(cpus); model != nil {
		e.CPU = string(model[1])
	}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return e
	}
	for _, dep := range info.Deps {
		if slices.Contains([]string{"k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, dep.Path) {
			e.Modules[dep.Path] = dep.Version
		}
	}
	return e
}
