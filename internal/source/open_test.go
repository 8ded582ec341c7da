package source_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/source"
)

func TestOpen_WaitsForAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		asked := 0
		s := source.New(source.Config{Client: client, GVR: widgets, Admit: func(context.Context) (bool, error) {
			asked++
			if asked < 3 {
				return false, errAbsent
			}
			return true, nil
		}})
		begun := time.Now()
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 3*time.Second || took > 3300*time.Millisecond {
			t.Errorf("open after %v, want 1 + 2 s and at most a tenth more", took)
		}
		if got := client.requests(); got != nil {
			t.Errorf("requests of Open: %v", got)
		}
		if _, err := listerWatcher(s).ListWithContext(t.Context(), metav1.ListOptions{}); err != nil || asked != 3 {
			t.Errorf("list after Open: %v, asked %d times, want 3", err, asked)
		}
	})
}

func TestOpen_WithoutAdmitIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := source.New(source.Config{Client: &script{}, GVR: widgets}).Open(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
