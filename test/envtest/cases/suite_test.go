package cases

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

var server *embedded.Server

// TestMain runs many cases at a time: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if args, is := os.LookupEnv(writerEnv); is {
		fmt.Fprintln(os.Stderr, writeToAnObject(args))
		return
	}
	klog.SetLogger(klog.Logger{}) // failures are the subject of the cases
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	var err error
	if server, err = embedded.Start(context.Background()); err != nil { //nolint:forbidigo // a TestMain has no context
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		var err error
		eventually(context.Background(), limit, func() bool { err = goleak.Find(); return err == nil }) //nolint:forbidigo // a TestMain has no context
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func TestCases(t *testing.T) {
	t.Parallel()
	for _, r := range rows {
		if r.run == nil {
			continue
		}
		t.Run(strconv.Itoa(r.number), func(t *testing.T) {
			t.Parallel()
			for name, want := range map[string]string{"gvrkit": r.gvrkit, "client-go": r.clientGo} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := newScenario(t, implementations[name])
					if got := r.run(s); got != want {
						t.Errorf("outcome:\n%s\nwant:\n%s\nrequests: %+v", got, want, s.proxy.Past(s.ofType()))
					}
				})
			}
		})
	}
}
