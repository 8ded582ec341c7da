package sharded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/sharding"
)

// memberEnv makes the test binary run as a member. Its value is the JSON of a config.
const memberEnv = "GVRKIT_TEST_MEMBER"

// config is what a member gets at its start.
type config struct {
	Host, Group, Identity string
	Lease                 time.Duration
}

// message is a line between a member and the test, in both directions.
type message struct {
	// Kind is that of a message to the test: begin or end of a handling, deleted, or an answer. It is empty in messages to the member.
	Kind string `json:",omitempty"`
	// Ask is what the test asks: go answers a begin or an end, and has no answer itself.
	Ask string `json:",omitempty"`
	ID  int    `json:",omitempty"` // of a question and its answer

	UID     types.UID `json:",omitempty"`
	Version string    `json:",omitempty"`

	Owns    bool                 `json:",omitempty"`
	State   *state               `json:",omitempty"`
	Objects map[types.UID]string `json:",omitempty"`
	Err     string               `json:",omitempty"`
}

// state is what a member says about itself.
type state struct {
	Held                    string // slots
	Slots, Pending, Members int
	Reason                  sharding.Reason
	Objects                 int
	Loaded                  bool   // the cache has all objects of Held
	ByClient                bool   // the server does not select
	Bytes                   uint64 // of responses, uncompressed
}

// participant is a member in its own process. It handles objects as the test allows.
type participant struct {
	out     *json.Encoder
	writing sync.Mutex // one line at a time; a pipe has no other user
	goes    chan struct{}
	ended   chan struct{} // closes when standard input has ended

	shard   *sharding.Member
	factory *dynamicinformer.Factory
	lease   *dynamicinformer.Lease
}

// beMember runs the process of a member until the test says that it leaves, or ends.
func beMember() error {
	var cfg config
	if err := json.Unmarshal([]byte(os.Getenv(memberEnv)), &cfg); err != nil {
		return err
	}
	ctx := context.Background() //nolint:forbidigo // that of the process
	client := &rest.Config{Host: cfg.Host, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	leases, err := kubernetes.NewForConfig(client)
	if err != nil {
		return err
	}
	p := &participant{out: json.NewEncoder(os.Stdout), goes: make(chan struct{}, 1), ended: make(chan struct{})}
	if p.shard, err = sharding.Join(ctx, leases, sharding.Config{Namespace: metav1.NamespaceDefault, Name: cfg.Group, Identity: cfg.Identity, LeaseDuration: cfg.Lease}); err != nil {
		return err
	}
	if p.factory, err = dynamicinformer.NewForConfig(client, dynamicinformer.WithShard(p.shard)); err != nil {
		return err
	}
	questions := make(chan message, 100)
	go p.read(questions)
	for question := range questions {
		answer := message{Kind: "answer", ID: question.ID}
		if err := p.answer(ctx, question, &answer); err != nil {
			answer.Err = err.Error()
		}
		p.send(answer)
		if question.Ask == "leave" {
			return nil
		}
	}
	return errors.New("the test has ended")
}

// read reads messages until standard input ends.
func (p *participant) read(questions chan<- message) {
	defer close(questions)
	defer close(p.ended)
	in := json.NewDecoder(os.Stdin)
	for {
		var m message
		if err := in.Decode(&m); err != nil {
			return
		}
		if m.Ask == "go" {
			p.goes <- struct{}{}
			continue
		}
		questions <- m
	}
}

func (p *participant) send(m message) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.out.Encode(m) // an error means that the test has ended, which read notices
}

func (p *participant) answer(ctx context.Context, question message, answer *message) (err error) {
	switch question.Ask {
	case "start":
		return p.start(ctx)
	case "owns":
		answer.Owns = p.shard.Owns(question.UID)
	case "state":
		answer.State = p.state()
	case "objects":
		answer.Objects, err = p.objects()
		return err
	case "leave":
		return p.leave(ctx)
	default:
		return fmt.Errorf("the question %q is not known", question.Ask)
	}
	return nil
}

// start begins to watch and to handle objects.
func (p *participant) start(ctx context.Context) (err error) {
	if p.lease, err = p.factory.Acquire(ctx, blocks); err != nil {
		return err
	}
	if _, err = p.lease.AddEventHandler(p); err != nil {
		return err
	}
	p.factory.Start(ctx)
	return nil
}

func (p *participant) state() *state {
	group := p.shard.Status()
	s := &state{Held: group.Held.String(), Slots: group.Held.Len(), Pending: group.Pending.Len(), Reason: group.Reason, Loaded: len(group.Loading) == 0}
	for _, other := range group.Members {
		if other.Identity != "" && !other.Expired && !other.Deleted && !other.Leaving {
			s.Members++
		}
	}
	if p.lease != nil {
		informer := p.lease.Status()
		s.Objects, s.Bytes = informer.Objects, informer.Traffic.Bytes
		s.ByClient = informer.Shard != nil && informer.Shard.ByClient
	}
	return s
}

// objects returns the versions of the objects in the cache.
func (p *participant) objects() (map[types.UID]string, error) {
	list, err := p.lease.Unstructured().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	versions := map[types.UID]string{}
	for _, obj := range list {
		versions[obj.GetUID()] = obj.GetResourceVersion()
	}
	return versions, nil
}

func (p *participant) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return errors.Join(p.factory.Shutdown(ctx), p.shard.Leave(ctx))
}

var (
	_ cache.ResourceEventHandler   = (*participant)(nil)
	_ dynamicinformer.MovedHandler = (*participant)(nil)
)

// OnAdd implements cache.ResourceEventHandler.
func (p *participant) OnAdd(obj any, _ bool) { p.handle(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (p *participant) OnUpdate(_, obj any) { p.handle(obj) }

// OnDelete implements cache.ResourceEventHandler.
func (p *participant) OnDelete(obj any) {
	if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = unknown.Obj
	}
	p.send(message{Kind: "deleted", UID: obj.(metav1.Object).GetUID()})
}

// OnMoved implements dynamicinformer.MovedHandler.
func (p *participant) OnMoved(any) {}

// handle handles an object. The test answers when it has recorded the begin and the end.
func (p *participant) handle(obj any) {
	of := obj.(metav1.Object)
	m := message{Kind: "begin", UID: of.GetUID(), Version: of.GetResourceVersion()}
	for _, m.Kind = range []string{"begin", "end"} {
		p.send(m)
		select {
		case <-p.goes:
		case <-p.ended:
			return
		}
	}
}

// memberMain is the main function of the process of a member.
func memberMain() {
	if err := beMember(); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
