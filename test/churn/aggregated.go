package churn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// automanaged is the label of APIServices that kube-apiserver makes for CRDs. With it, kube-apiserver undoes a change.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// aggregated is the aggregated server of a run: another API server with types of the same names, which has its own objects. The
// API servers of the run reach it through a front with TLS on localhost, to which a Service leads.
type aggregated struct {
	world   *World
	lag     *ServerLag
	client  dynamic.Interface // of the first API server of the run
	servers []*httpServer     // all of them
	behind  *writer           // writes to the aggregated server
	close   []func()
	proxy   *faultproxy.Proxy // between front and server
	front   *http.Server
	port    int64
	up      func() // ends what down began
}

// httpServer is an API server, without an interpretation of its responses.
type httpServer struct {
	host   string
	client *http.Client
}

// frontHeader marks the responses of the aggregated server.
const frontHeader = "X-Churn-Aggregated"

// aggregatedCategory marks the types of the aggregated server in discovery documents.
const aggregatedCategory = "churn-aggregated"

// open starts the front of the server of cfg, and creates the Service.
func (a *aggregated) open(ctx context.Context, cfg *rest.Config) error {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	a.close = append(a.close, client.CloseIdleConnections)
	direct, err := dynamic.NewForConfigAndClient(unlimited(cfg), client)
	if err != nil {
		return err
	}
	a.behind = &writer{world: a.world, client: direct}
	if a.proxy, err = faultproxy.Start(cfg.Host, client.Transport); err != nil { //nolint:contextcheck // close ends it
		return err
	}
	a.close = append(a.close, func() { _ = a.proxy.Close() })
	target, err := url.Parse(a.proxy.URL())
	if err != nil {
		return err
	}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	a.port = int64(listener.Addr().(*net.TCPAddr).Port)
	toProxy := &http.Transport{}
	a.front = &http.Server{
		ReadHeaderTimeout: time.Minute,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:          log.New(io.Discard, "", 0), // API servers often close connections early
		Handler: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     toProxy,
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0),
			ModifyResponse: func(r *http.Response) error {
				r.Header.Set(frontHeader, "true")
				return nil
			},
		},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.front.ServeTLS(listener, "", "") // until it is closed
	}()
	a.close = append(a.close, func() {
		_ = a.front.Close()
		<-ended
		toProxy.CloseIdleConnections()
	})
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}}
	service.SetName(a.service())
	_, err = a.client.Resource(services).Namespace("default").Create(ctx, service, metav1.CreateOptions{})
	return err
}

func (a *aggregated) service() string { return a.world.run() }

// selfSigned returns a certificate for localhost.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// end deletes what the run has created, and stops the front.
func (a *aggregated) end(ctx context.Context) error {
	var err error
	if a.world.Moved() {
		err = a.giveBack(ctx)
	}
	if a.behind != nil {
		for _, typ := range a.world.Types() {
			deleted := a.behind.client.Resource(definitions).Delete(ctx, a.behind.definitionName(typ), metav1.DeleteOptions{})
			err = errors.Join(err, ignoreNotFound(deleted))
		}
	}
	deleted := a.client.Resource(services).Namespace("default").Delete(ctx, a.service(), metav1.DeleteOptions{})
	err = errors.Join(err, ignoreNotFound(deleted))
	for _, f := range slices.Backward(a.close) {
		f()
	}
	return err
}

// takeFirst is take after all API servers know the types. A kube-apiserver that is behind may have learned of an APIService, and not of its CRD: it
// deletes the APIService, also if take has changed it since.
func (a *aggregated) takeFirst(ctx context.Context) error {
	defer a.lag.pause()()
	switch ok, err := a.documented(ctx, documentedWithin); {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("churn: after %v, the discovery document of an API server does not have the types that are served", documentedWithin)
	}
	return a.take(ctx)
}

// documentedWithin is how long API servers may take to have the right documents before the types move.
const documentedWithin = 30 * time.Second

// take makes the aggregated server serve the group, with the types that the API servers serve now, and returns when they send requests
// there.
func (a *aggregated) take(ctx context.Context) error {
	for typ, crd := range a.world.absentOnOther() {
		crd.Served = allVersions
		definition := a.behind.definition(typ, crd.Namespaced, crd.Served)
		definition.Object["spec"].(map[string]any)["names"].(map[string]any)["categories"] = []any{aggregatedCategory}
		created, err := a.behind.client.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		crd.UID = created.GetUID()
		a.world.definedOnOther(typ, crd)
		if err := a.behind.quicken(ctx, typ); err != nil {
			return err
		}
	}
	a.world.move(time.Now())
	if err := a.registerAll(ctx); err != nil {
		return err
	}
	moved := func(r *http.Response) bool { return r.Header.Get(frontHeader) != "" && r.StatusCode == http.StatusOK }
	again := func(ctx context.Context) error { return errors.Join(a.registerAll(ctx), a.touch(ctx)) } // a server that was behind may have deleted an APIService
	if err := a.await(ctx, moved, again); err != nil {
		return err
	}
	_, err := a.documented(ctx, patience)
	return err
}

// registerAll makes the aggregated server serve all versions.
func (a *aggregated) registerAll(ctx context.Context) error {
	for _, version := range allVersions {
		if err := a.register(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// register makes the aggregated server serve a version.
func (a *aggregated) register(ctx context.Context, version string) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": a.world.Group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(100),
		"service":               map[string]any{"namespace": "default", "name": a.service(), "port": a.port},
		"insecureSkipTLSVerify": true,
	}}}
	obj.SetAPIVersion(apiServices.GroupVersion().String())
	obj.SetKind("APIService")
	obj.SetName(version + "." + a.world.Group)
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{automanaged: nil}}, "spec": obj.Object["spec"]})
	if err != nil {
		return err
	}
	return until(ctx, "register the aggregated server", func() (bool, error) {
		_, err := a.client.Resource(apiServices).Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			_, err = a.client.Resource(apiServices).Create(ctx, obj, metav1.CreateOptions{})
		}
		if apierrors.IsAlreadyExists(err) { // the API server has created it for the CRD meanwhile
			return false, nil
		}
		return err == nil, err
	})
}

// giveBack ends what take began. If a document keeps the types of the aggregated server, it takes them again, and gives them back again:
// the discovery manager of kube-apiserver 1.36.3 forgets an APIService only if it sees it deleted, and another controller creates it
// again at once.
func (a *aggregated) giveBack(ctx context.Context) error {
	defer a.lag.pause()()
	if a.up != nil {
		a.up()
		a.up = nil
	}
	for range 50 {
		if err := a.giveBackOnce(ctx); err != nil {
			return err
		}
		ok, err := a.documented(ctx, time.Second)
		if ok || err != nil {
			return err
		}
		if err := a.take(ctx); err != nil {
			return err
		}
	}
	return errors.New("churn: the discovery document of an API server stays wrong")
}

func (a *aggregated) giveBackOnce(ctx context.Context) error {
	a.world.move(time.Now())
	for _, version := range allVersions {
		err := a.client.Resource(apiServices).Delete(ctx, version+"."+a.world.Group, metav1.DeleteOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	if err := a.await(ctx, func(r *http.Response) bool {
		return r.Header.Get(frontHeader) == "" && r.StatusCode != http.StatusServiceUnavailable
	}, a.touch); err != nil {
		return err
	}
	a.proxy.CutWatches(nil) // of those that the API servers have sent late
	return nil
}

// setDown makes the aggregated server respond 503, and breaks its watches. If it is not down, it does the opposite, and returns when
// the API servers send requests again.
func (a *aggregated) setDown(ctx context.Context, down bool) error {
	if down == (a.up != nil) {
		return nil
	}
	a.world.setDown(down)
	if down {
		a.up = a.proxy.Inject(nil, faultproxy.Fail(http.StatusServiceUnavailable))
		a.proxy.CutWatches(nil)
		return nil
	}
	a.up()
	a.up = nil
	if err := a.touch(ctx); err != nil { // otherwise the API servers ask after half a minute
		return err
	}
	return a.await(ctx, func(r *http.Response) bool { return r.StatusCode == http.StatusOK }, a.touch)
}

// touch makes the API servers request the documents of the group's servers.
func (a *aggregated) touch(ctx context.Context) error {
	for _, version := range allVersions {
		annotation := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now().Format(time.RFC3339Nano))
		_, err := a.client.Resource(apiServices).Patch(ctx, version+"."+a.world.Group, types.MergePatchType, annotation, metav1.PatchOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// documented waits until the aggregated discovery documents of all API servers have what is served, and reports whether they do.
func (a *aggregated) documented(ctx context.Context, most time.Duration) (bool, error) {
	for _, server := range a.servers {
		for begun := time.Now(); ; {
			ok, err := a.documentedBy(ctx, server)
			if err != nil {
				return false, err
			}
			if ok {
				break
			}
			if time.Since(begun) > most {
				return false, nil
			}
			if err := wait(ctx, 20*time.Millisecond); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// documentedBy reports whether the aggregated discovery document of a server has what is served.
func (a *aggregated) documentedBy(ctx context.Context, server *httpServer) (bool, error) {
	response, body, err := server.get(ctx, "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList") //nolint:bodyclose // get has closed it
	if err != nil || response.StatusCode != http.StatusOK {
		return false, err
	}
	var document struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Versions []struct {
				Version   string `json:"version"`
				Resources []struct {
					Resource   string   `json:"resource"`
					Categories []string `json:"categories"`
				} `json:"resources"`
			} `json:"versions"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return false, err
	}
	listed, moved := map[schema.GroupVersionResource]bool{}, a.world.Moved()
	for _, group := range document.Items {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				if group.Metadata.Name == a.world.Group && slices.Contains(resource.Categories, aggregatedCategory) != moved {
					return false, nil
				}
				listed[schema.GroupVersionResource{Group: group.Metadata.Name, Version: version.Version, Resource: resource.Resource}] = true
			}
		}
	}
	for _, typ := range a.world.Types() {
		crd, n := a.world.Incarnation(typ)
		for _, version := range allVersions {
			if listed[a.world.Resource(typ, version)] != (n >= 0 && slices.Contains(crd.Served, version)) {
				return false, nil
			}
		}
	}
	return true, nil
}

// touchEvery is how often await makes the API servers look at the group again: if their requests to its server fail, they repeat them after half a
// minute.
const touchEvery = 10 * time.Second

// await waits until the responses of all API servers to requests for a type that is defined, in each of its versions, are as wanted. It calls again
// after each touchEvery.
func (a *aggregated) await(ctx context.Context, wanted func(*http.Response) bool, again func(ctx context.Context) error) error {
	touched := time.Now()
	for _, typ := range a.world.Types() {
		crd, n := a.world.Incarnation(typ)
		if n < 0 {
			continue
		}
		for _, version := range crd.Served {
			for _, server := range a.servers {
				last := "no response"
				err := until(ctx, "wait for another server of "+typ+" "+version, func() (bool, error) {
					path := "/apis/" + a.world.Resource(typ, version).GroupVersion().String() + "/" + typ + "s?limit=1"
					response, _, err := server.get(ctx, path, "application/json") //nolint:bodyclose // get has closed it
					if err != nil {
						return false, err
					}
					last = fmt.Sprintf("%s, aggregated: %q", response.Status, response.Header.Get(frontHeader))
					if time.Since(touched) > touchEvery {
						touched, err = time.Now(), again(ctx)
					}
					return err == nil && wanted(response), err
				})
				if err != nil {
					return fmt.Errorf("%w; the last response of %s: %s", err, server.host, last)
				}
			}
		}
	}
	return nil
}

// get sends a request, and reads the response.
func (s *httpServer) get(ctx context.Context, path, accept string) (response *http.Response, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.host, "/")+path, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", accept)
	if response, err = s.client.Do(request); err != nil {
		return nil, nil, err
	}
	body, err = io.ReadAll(response.Body)
	return response, body, errors.Join(err, response.Body.Close())
}
