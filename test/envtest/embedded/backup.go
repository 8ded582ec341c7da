package embedded

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// backupPath is the path of the child's backup request, as in package inprocess.
const backupPath = "/embedded/backup"

// Backup has all CRDs of a server and all of their objects at one moment. It is in memory,
// does not change, and can be restored many times, also on other servers.
type Backup struct{ content []byte }

// Backup returns all CRDs and objects of the server, like a backup of etcd.
func (s *Server) Backup(ctx context.Context) (*Backup, error) {
	i, err := newInstaller(s.config)
	if err != nil {
		return nil, fmt.Errorf("embedded: backup: %w", err)
	}
	content, err := i.raw.Get().AbsPath(backupPath).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("embedded: backup: %w", err)
	}
	return &Backup{content}, nil
}

// Restore stores the CRDs and objects of b, like a restore of etcd, but while the server
// runs. They have the same UIDs as before, and other resource versions. Objects that are
// not in b are kept; call [Server.Reset] first to delete them. Restore returns when
// all CRDs can be listed with their objects. If it fails, some of the objects may be
// stored.
//
// Clients that are connected stay connected. A watch gets an event for each object of its
// type in b: Added, or Modified if the object exists. Neither admission nor validation is
// run. Stop the controllers of a spec before Restore, as before Reset.
func (s *Server) Restore(ctx context.Context, b *Backup) error {
	if err := s.restore(ctx, b); err != nil {
		return fmt.Errorf("embedded: restore: %w", err)
	}
	return nil
}

func (s *Server) restore(ctx context.Context, b *Backup) error {
	if b == nil {
		return errors.New("the backup is nil")
	}
	i, err := newInstaller(s.config)
	if err != nil {
		return err
	}
	if err := i.raw.Put().AbsPath(backupPath).Body(b.content).Do(ctx).Error(); err != nil {
		return err
	}
	crds, err := i.crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, crd := range crds.Items {
		if status, _ := condition(&crd, "Established"); status != "True" {
			continue
		}
		if err := i.waitListable(ctx, &crd); err != nil {
			return err
		}
	}
	return i.waitCurrent(ctx)
}
