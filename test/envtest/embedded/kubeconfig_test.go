package embedded_test

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func TestServer_KubeconfigIsForTheServer(t *testing.T) {
	server := start(t)
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "new", "kubeconfig")
	if err := server.WriteKubeconfig(path); err != nil {
		t.Fatalf("WriteKubeconfig: %v", err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, cfg).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list with the kubeconfig: %v", err)
	}
}

func TestServer_KubeconfigFileIsReadableOnlyByItsOwner(t *testing.T) {
	server := start(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil { // readable for other users
		t.Fatal(err)
	}
	if err := server.WriteKubeconfig(path); err != nil {
		t.Fatalf("WriteKubeconfig: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode %v, want -rw-------", got)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("files beside it: %v, %v", left, err)
	}
	if err := server.WriteKubeconfig(filepath.Join(path, "below")); err == nil {
		t.Error("WriteKubeconfig below a file: no error")
	}
}
