package inprocess

import (
	"net/http"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
)

const (
	// ResetPath is the path of a POST request that deletes all custom resources and,
	// unless the parameter [ResetObjectsOnly] is set, all CustomResourceDefinitions,
	// without finalizers and admission. The API server gets the deletions from etcd
	// some milliseconds after the response. Watches get an event for each deletion.
	ResetPath = "/embedded/reset"
	// ResetObjectsOnly is a parameter of ResetPath: keep CustomResourceDefinitions.
	ResetObjectsOnly = "objects"
)

// resetHandler serves ResetPath for an API server that stores its objects in member
// under prefix.
func resetHandler(member *etcdserver.EtcdServer, prefix string) http.Handler {
	var (
		crds    = prefix + "/apiextensions.k8s.io/customresourcedefinitions/"
		all     = deletion(prefix+"/", after(prefix+"/"))
		objects = []*pb.RequestOp{deletion(prefix+"/", crds), deletion(after(crds), after(prefix+"/"))}
	)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ops := []*pb.RequestOp{all}
		if req.URL.Query().Has(ResetObjectsOnly) {
			ops = objects
		}
		if _, err := member.Txn(req.Context(), &pb.TxnRequest{Success: ops}); err != nil {
			http.Error(w, "reset: "+err.Error(), http.StatusInternalServerError)
		}
	})
}

// deletion deletes the keys from first up to, and not including, end.
func deletion(first, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(first), RangeEnd: []byte(end)},
	}}
}

// after returns the first key that is greater than all keys that begin with prefix,
// whose last byte is a slash.
func after(prefix string) string { return prefix[:len(prefix)-1] + string(rune('/'+1)) }
