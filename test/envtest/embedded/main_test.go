package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// parentEnv makes the test binary run as a program that starts a server and waits until it
// is killed; see TestServer_EndsWithItsParent.
const parentEnv = "GVRKIT_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		beParent()
	}
	goleak.VerifyTestMain(m)
}

func beParent() {
	server, err := embedded.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(server.Config().Host)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until killed
	os.Exit(0)
}
