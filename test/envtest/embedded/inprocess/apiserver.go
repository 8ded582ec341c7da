package inprocess

import (
	"errors"
	"io"
	"net"
	"net/http"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// newAPIServer assembles the CRD server on member, which listens on socket. It does not use
// the Config method of the options, which requires a core API server.
func newAPIServer(member *etcdserver.EtcdServer, socket string, clients *clients) (*apiserver.CustomResourceDefinitions, error) {
	opts := crdoptions.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	rec := opts.RecommendedOptions
	store := socketURL(socket)
	rec.Etcd.StorageConfig.Transport.ServerList = []string{store.String()}
	withoutCore(rec)
	listener, err := listenLoopback(rec.SecureServing)
	if err != nil {
		return nil, err
	}
	rec.SecureServing.Listener = clients.listener(listener)
	prefix := rec.Etcd.StorageConfig.Prefix
	srv, err := assemble(opts, clients, map[string]http.Handler{
		"POST " + ResetPath: resetHandler(member, prefix),
		"GET " + BackupPath: backupHandler(member, prefix),
		"PUT " + BackupPath: restoreHandler(member, prefix),
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close()) // otherwise the server closes it
	}
	return srv, nil
}

// withoutCore disables features that send requests to a kube-apiserver.
func withoutCore(rec *genericoptions.RecommendedOptions) {
	rec.CoreAPI = nil
	rec.Admission = nil
	rec.Authentication = nil // assemble sets a stricter one
	rec.Authorization = nil  // an authenticated user may do everything
	rec.Features.EnablePriorityAndFairness = false
	rec.Features.EnableProfiling = false
}

// listenLoopback gives serving a listener, so that the port is known from the beginning, and a
// certificate in memory.
func listenLoopback(serving *genericoptions.SecureServingOptionsWithLoopback) (net.Listener, error) {
	loopback := net.IPv4(127, 0, 0, 1)
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback})
	if err != nil {
		return nil, err
	}
	serving.Listener = listener
	serving.BindAddress = loopback
	serving.BindPort = listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory = ""
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{loopback}); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func assemble(opts *crdoptions.CustomResourceDefinitionsServerOptions, clients *clients, own map[string]http.Handler) (*apiserver.CustomResourceDefinitions, error) {
	if err := opts.Complete(); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	cfg := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	if err := opts.ServerRunOptions.ApplyTo(&cfg.Config); err != nil {
		return nil, err
	}
	if err := opts.RecommendedOptions.ApplyTo(cfg); err != nil {
		return nil, err
	}
	if err := opts.APIEnablement.ApplyTo(&cfg.Config, apiserver.DefaultAPIResourceConfigSource(), apiserver.Scheme); err != nil {
		return nil, err
	}
	// Completing the configuration puts the loopback token in front of this
	// authenticator, which rejects every request. Without an authenticator, every
	// request would be accepted.
	cfg.Authentication.Authenticator = authenticator.RequestFunc(
		func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
	cfg.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return clients.handler(genericapiserver.DefaultBuildHandlerChain(api, c), func(req *http.Request) bool {
			info, err := c.RequestInfoResolver.NewRequestInfo(req)
			return err == nil && c.LongRunningFunc(req, info)
		})
	}
	cfg.AdmissionControl = admission.NewChainHandler(newNoTopLevelItems())

	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme, clientgoscheme.Scheme)
	cfg.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	cfg.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)

	groups := aggregated.NewResourceManager("apis")
	cfg.AggregatedDiscoveryGroupManager = groups

	full := apiserver.Config{
		GenericConfig: cfg,
		ExtraConfig: apiserver.ExtraConfig{
			CRDRESTOptionsGetter: crdoptions.NewCRDRESTOptionsGetter(
				*opts.RecommendedOptions.Etcd, cfg.ResourceTransformers, cfg.StorageObjectCountTracker),
			MasterCount:     1,
			ServiceResolver: webhook.NewDefaultServiceResolver(),
			AuthResolverWrapper: webhook.NewDefaultAuthenticationInfoResolverWrapper(
				nil, nil, cfg.LoopbackClientConfig, cfg.TracerProvider),
		},
	}
	// The CRD server does not serve these paths. All other paths are 404.
	rest := http.NewServeMux()
	rest.Handle("GET /apis", rootDiscovery(groups))
	for pattern, handler := range own {
		rest.Handle(pattern, handler)
	}
	return full.Complete().New(genericapiserver.NewEmptyDelegateWithCustomHandler(rest))
}

// withCodec returns a copy of cfg for an unversioned REST client.
func withCodec(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return c
}
