package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// blocksPage returns the page about objs.
func blocksPage(t *testing.T, objs ...*unstructured.Unstructured) *httptest.ResponseRecorder {
	t.Helper()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, obj := range objs {
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	page := &utilisation{cache.NewGenericLister(store, blockGVR.GroupResource())}
	page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/blocks", http.NoBody))
	return w
}

func TestUtilisation_EscapesEverything(t *testing.T) {
	const evil = `<script>alert(1)</script>"'`
	obj := newBlock(evil, evil, 4)
	nameless := newBlock("", evil, 0)
	nameless.SetName(evil)
	got := blocksPage(t, obj, nameless)
	if body := got.Body.String(); strings.Count(body, "<script") != 1 || strings.Count(body, "&lt;script&gt;alert(1)") != 4 {
		t.Errorf("markup is not escaped, or is missing:\n%s", body)
	}
	policy := got.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || got.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers: %v", got.Header())
	}
}

func TestUtilisation_LevelsAndPercentages(t *testing.T) {
	for _, tc := range []struct {
		used, size   int
		level, shown string
	}{
		{0, 64, "empty", "0 %"},
		{1, 64, "low", "1 %"},
		{31, 64, "low", "48 %"},
		{32, 64, "half", "50 %"},
		{48, 64, "high", "75 %"},
		{63, 64, "high", "98 %"},
		{64, 64, "full", "100 %"},
		{0, 0, "unknown", "-"},
	} {
		if l, p := level(tc.used, tc.size), percent(tc.used, tc.size); l != tc.level || p != tc.shown {
			t.Errorf("%d of %d: %s, %s, want %s, %s", tc.used, tc.size, l, p, tc.level, tc.shown)
		}
	}
}

func TestUtilisation_IsBounded(t *testing.T) {
	var blocks []block
	for i := range 10_000 {
		blocks = append(blocks, block{Name: fmt.Sprint(i), Used: 1, Size: 2})
	}
	v := newUtilisationView(blocks, time.Now())
	if len(v.Cells) != 2000 || v.NotShown != 8000 || v.Blocks != 10_000 || v.Used != 10_000 || v.Size != 20_000 {
		t.Errorf("%d cells, %d not shown, %d blocks, %d of %d used", len(v.Cells), v.NotShown, v.Blocks, v.Used, v.Size)
	}
	if got := blocksPage(t).Body.String(); !strings.Contains(got, "None yet.") {
		t.Errorf("without blocks: %s", got)
	}
}
