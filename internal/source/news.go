package source

import (
	"context"
	"errors"
)

// news ends a pause or a request early. A nil channel never does.
type news struct {
	changed  <-chan struct{} // closes when the state of the type changes
	reviewed <-chan struct{} // closes when the view of the shard changes
	listed   <-chan struct{} // closes when a list of gained slots is complete
}

// errGaveWay is the cause if the gate has ended a request because of news. It is never reported.
var errGaveWay = errors.New("the type or the shard has changed during the request")

// cancelOn cancels with errGaveWay if there is news before the returned function is called.
func cancelOn(n news, cancel context.CancelCauseFunc) (release func()) {
	if n == (news{}) {
		return func() {}
	}
	released, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-n.changed:
		case <-n.reviewed:
		case <-n.listed:
		case <-released:
			return
		}
		cancel(errGaveWay)
	}()
	return func() {
		close(released)
		<-ended
	}
}

// causeOf returns err, the error of a request on ctx, or errGaveWay if that is its cause.
func causeOf(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errGaveWay) {
		return errGaveWay
	}
	return err
}

// openUnless returns the stream that open opens, or errGaveWay if there is news meanwhile.
func openUnless(ctx context.Context, n news, open func(context.Context) (*stream, error)) (*stream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := cancelOn(n, cancel)
	stream, err := open(ctx)
	release()
	if err == nil && ctx.Err() != nil { // the server accepted the watch at the same time
		stream.close()
		err = ctx.Err()
	}
	if err != nil {
		err = causeOf(ctx, err)
		cancel(nil)
		return nil, err
	}
	closeStream := stream.release
	stream.release = func() {
		cancel(nil)
		closeStream()
	}
	return stream, nil
}
