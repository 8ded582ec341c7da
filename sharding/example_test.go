package sharding_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gvrkit/gvrkit/sharding"
)

// Each pod of a StatefulSet has a fixed part. The pod gets its index by the downward API, from the label
// apps.kubernetes.io/pod-index.
func ExampleStatic() {
	index, err := strconv.Atoi("2") // os.Getenv("POD_INDEX")
	if err != nil {
		fmt.Println(err)
		return
	}
	shard, err := sharding.Static(index, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	uid := types.UID("0c1a6f35-9b3e-4a57-8d4f-5b0e7a3f1c22")
	fmt.Println(shard.View().Slots, shard.Owns(uid), sharding.SlotOf(uid))
	fmt.Println(shard.Selector())
	// Output:
	// 128-191 false 82
	// shardRange(object.metadata.uid, '0x8000000000000000', '0xc000000000000000')
}

// A program that runs until its context ends follows the slots that it has.
func ExampleJoin() {
	_ = func(ctx context.Context, client kubernetes.Interface) error {
		member, err := sharding.Join(ctx, client, sharding.Config{
			Namespace: "default",
			Name:      "widget-controller",
			Identity:  os.Getenv("POD_NAME"),
		})
		if err != nil {
			return err
		}
		follower := member.Follow("widgets")
		defer follower.Stop()
		for {
			changed := member.Changed()
			view := member.View()
			// Stop acting on the objects of all other slots, and wait for calls in progress.
			follower.LetGo(view.Generation)
			// List and watch the objects of these slots, by member.Selector().
			fmt.Println("slots:", view.Slots)
			follower.Loaded(view.Generation)
			select {
			case <-changed:
			case <-ctx.Done():
				follower.Stop()
				leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
				defer cancel()
				return member.Leave(leaving)
			case <-member.Done(): // for example, the identity is in use
				return member.Err()
			}
		}
	}
	// Output:
}
