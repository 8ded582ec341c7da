package inprocess

import (
	"encoding/json"
	"net/http"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
)

// BackupPath is the path of a GET request that returns all CustomResourceDefinitions and
// custom resources as etcd stores them, and of a PUT request that stores the body of such a
// response. The PUT request deletes nothing, and is not atomic. The API server gets the
// changes from etcd some milliseconds after the response.
const BackupPath = "/embedded/backup"

// stored is a key and its value in etcd.
type stored struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// backupHandler serves GET requests on BackupPath for an API server that stores its objects
// in member under prefix.
func backupHandler(member *etcdserver.EtcdServer, prefix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		all, err := member.Range(req.Context(), &pb.RangeRequest{Key: []byte(prefix + "/"), RangeEnd: []byte(after(prefix + "/"))})
		if err != nil {
			http.Error(w, "backup: "+err.Error(), http.StatusInternalServerError)
			return
		}
		pairs := make([]stored, 0, len(all.Kvs))
		for _, kv := range all.Kvs {
			pairs = append(pairs, stored{kv.Key, kv.Value})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(pairs) // it fails after the client has disconnected
	})
}

// restoreHandler serves PUT requests on BackupPath for an API server that stores its objects
// in member under prefix. It stores objects before the CRDs, so that they exist when their
// type is served.
func restoreHandler(member *etcdserver.EtcdServer, prefix string) http.Handler {
	crds := prefix + "/apiextensions.k8s.io/customresourcedefinitions/"
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var pairs []stored
		if err := json.NewDecoder(req.Body).Decode(&pairs); err != nil {
			http.Error(w, "restore: "+err.Error(), http.StatusBadRequest)
			return
		}
		for _, ofCRDs := range []bool{false, true} {
			for _, pair := range pairs {
				if strings.HasPrefix(string(pair.Key), crds) != ofCRDs {
					continue
				}
				if _, err := member.Put(req.Context(), &pb.PutRequest{Key: pair.Key, Value: pair.Value}); err != nil {
					http.Error(w, "restore: "+err.Error(), http.StatusInternalServerError)
					return
				}
			}
		}
	})
}
