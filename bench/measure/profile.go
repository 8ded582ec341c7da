package measure

import (
	"errors"
	"os"
	"runtime/pprof"
)

// cpuProfile writes a CPU profile of what is done until stop is called. With no
// prefix it does nothing.
func cpuProfile(prefix, phase string) (stop func() error, err error) {
	if prefix == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(prefix + "-" + phase + ".cpu.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// memProfile writes what has been allocated so far and what of it is live.
func memProfile(prefix, phase string) error {
	if prefix == "" {
		return nil
	}
	file, err := os.Create(prefix + "-" + phase + ".mem.pprof")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
