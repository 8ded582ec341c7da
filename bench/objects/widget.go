package objects

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// resource is an object with a spec and a status.
type resource[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status"`
}

// DeepCopyObject implements runtime.Object. The copy is not deep: nothing changes these objects.
func (r *resource[Spec, Status]) DeepCopyObject() runtime.Object { c := *r; return &c }

// Widget is the Go type of the mix. It has five sixths of the bytes of spec and status: the other fields are rare
// and short. Fields whose type varies, and parts of rare shapes, are JSON.
type Widget = resource[widgetSpec, widgetStatus]

type widgetSpec struct {
	Data      *runtime.RawExtension `json:"data"`
	DNSNames  []string              `json:"dnsNames"`
	Hostnames []string              `json:"hostnames"`
	Groups    []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
	InfrastructureRef *part                   `json:"infrastructureRef"`
	IssuerRef         *part                   `json:"issuerRef"`
	ParentRefs        []part                  `json:"parentRefs"`
	Replicas          *int32                  `json:"replicas"`
	Resources         []composed              `json:"resources"`
	Rules             []routeRule             `json:"rules"`
	SecretStoreRef    *part                   `json:"secretStoreRef"`
	Selector          *metav1.LabelSelector   `json:"selector"`
	Source            *runtime.RawExtension   `json:"source"`
	Strategy          *runtime.RawExtension   `json:"strategy"`
	Target            *runtime.RawExtension   `json:"target"`
	Template          *corev1.PodTemplateSpec `json:"template"`
}

type widgetStatus struct {
	Addresses           []part                `json:"addresses"`
	Conditions          []metav1.Condition    `json:"conditions"`
	ExternalIdentifiers map[string]string     `json:"external-identifiers"`
	History             *runtime.RawExtension `json:"history"`
	Identity            *struct {
		ID     int64    `json:"id"`
		Labels []string `json:"labels"`
	} `json:"identity"`
	NamedPorts         []part                 `json:"named-ports"`
	Networking         *runtime.RawExtension  `json:"networking"`
	NodeInfo           *corev1.NodeSystemInfo `json:"nodeInfo"`
	NodeRef            *part                  `json:"nodeRef"`
	ObservedGeneration int64                  `json:"observedGeneration"`
	OperationState     *runtime.RawExtension  `json:"operationState"`
	Parents            []struct {
		Conditions     []metav1.Condition `json:"conditions"`
		ControllerName string             `json:"controllerName"`
		ParentRef      part               `json:"parentRef"`
	} `json:"parents"`
	Policy                map[string]policy     `json:"policy"`
	Resources             []part                `json:"resources"`
	Sync                  *runtime.RawExtension `json:"sync"`
	SyncedResourceVersion string                `json:"syncedResourceVersion"`
}

// part is a reference, or an element of a list.
type part struct {
	Address   string `json:"address"`
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Port      int64  `json:"port"`
	Status    string `json:"status"`
	Type      string `json:"type"`
	UID       string `json:"uid"`
	Value     string `json:"value"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Annotations map[string]string `json:"annotations"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Record      string            `json:"record"`
}

type routeRule struct {
	BackendRefs []part `json:"backendRefs"`
	Matches     []struct {
		Headers []part `json:"headers"`
		Method  string `json:"method"`
		Path    part   `json:"path"`
	} `json:"matches"`
}

type composed struct {
	Base    runtime.RawExtension `json:"base"`
	Name    string               `json:"name"`
	Patches []struct {
		FromFieldPath string `json:"fromFieldPath"`
		ToFieldPath   string `json:"toFieldPath"`
		Type          string `json:"type"`
	} `json:"patches"`
}

type policy struct {
	Allowed []struct {
		DestPort int64 `json:"dest-port"`
		Identity int64 `json:"identity"`
		Protocol int64 `json:"protocol"`
	} `json:"allowed"`
	Enforcing bool   `json:"enforcing"`
	State     string `json:"state"`
}
