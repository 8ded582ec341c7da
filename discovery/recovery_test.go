package discovery

import "testing"

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRecovery_WhatHadFailedAndSucceedsEndsBackOffs(t *testing.T) {
	var r recovery
	r.succeeded("/apis")
	crds, watch := r.failed("/crds"), r.waiting()
	r.succeeded("/apis") // it has not failed: the server was not out
	if closed(crds) || closed(watch) {
		t.Fatal("what has not failed has ended a back-off")
	}
	r.failed("/apis")
	r.succeeded("/apis")
	if !closed(crds) || !closed(watch) {
		t.Error("the first success did not end them")
	}
	again := r.waiting()
	r.succeeded("/apis")
	if closed(again) {
		t.Error("the second one has ended the next")
	}
	r.succeeded("/crds") // which was still failing
	if !closed(again) {
		t.Error("a success later did not end it")
	}
}
