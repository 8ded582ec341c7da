package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig for the server, for programs such as kubectl. It has the
// server's token, which allows every request: write it to a file that other users can't
// read.
func (s *Server) Kubeconfig() ([]byte, error) {
	content, err := clientcmd.Write(s.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("embedded: kubeconfig: %w", err)
	}
	return content, nil
}

// WriteKubeconfig writes the kubeconfig to a file that only the current user can read
// (mode 0600), and creates the directories of path. It replaces an existing file. The
// caller must remove the file.
func (s *Server) WriteKubeconfig(path string) error {
	content, err := s.Kubeconfig()
	if err != nil {
		return err
	}
	if err := writePrivate(path, content); err != nil {
		return fmt.Errorf("embedded: kubeconfig: %w", err)
	}
	return nil
}

func (s *Server) kubeconfig() api.Config {
	const name = "embedded"
	cfg := api.NewConfig()
	cluster := api.NewCluster()
	cluster.Server = s.config.Host
	cluster.TLSServerName = s.config.ServerName
	cluster.CertificateAuthorityData = s.config.CAData
	user := api.NewAuthInfo()
	user.Token = s.config.BearerToken
	at := api.NewContext()
	at.Cluster, at.AuthInfo = name, name
	cfg.Clusters[name], cfg.AuthInfos[name], cfg.Contexts[name] = cluster, user, at
	cfg.CurrentContext = name
	return *cfg
}

// writePrivate writes a temporary file and renames it: an existing file may be readable
// for other users, and would keep its mode.
func writePrivate(path string, content []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+"-") // its mode is 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
