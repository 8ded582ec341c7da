package servers

import (
	"context"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
)

// StubRole is the role of a process that is a stub.
const StubRole = "stub"

// stubOrders say what a stub serves.
type stubOrders struct {
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
}

// stubAnswer is what a stub says when it serves.
type stubAnswer struct {
	Host string `json:"host"`
}

type stubServer struct {
	process *child.Process
	host    string
}

func startStub(ctx context.Context, kind objects.Kind, n int) (Server, error) {
	process, err := child.Start(ctx, StubRole, nil, stubOrders{Kind: kind.Name, Objects: n})
	if err != nil {
		return nil, err
	}
	var answer stubAnswer
	if err := process.Read(&answer); err != nil {
		return nil, err
	}
	return &stubServer{process: process, host: answer.Host}, nil
}

func (s *stubServer) Connection() measure.Server { return measure.Server{Host: s.host} }

func (s *stubServer) Change(ctx context.Context, n int) error { return stub.Change(ctx, s.host, n) }

func (s *stubServer) Stop() error { return s.process.Stop() }

// RunStub makes this process a stub, until its parent wants no more.
func RunStub(ctx context.Context) error {
	var orders stubOrders
	ctx, err := child.Orders(ctx, &orders)
	if err != nil {
		return err
	}
	kind, err := objects.Named(orders.Kind)
	if err != nil {
		return err
	}
	corpus, err := objects.NewCorpus(ctx, kind, orders.Objects)
	if err != nil {
		return err
	}
	return child.Serve(ctx, stub.NewHandler(corpus), func(host string) any { return stubAnswer{Host: host} })
}
