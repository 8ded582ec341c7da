package measure

import (
	"time"

	"k8s.io/client-go/rest"
)

// Job says what is to be measured.
type Job struct {
	System string `json:"system"`
	Kind   string `json:"kind"`
	// Objects is how many objects the server has.
	Objects int `json:"objects"`
	// Events is how many changes are to be followed.
	Events int    `json:"events"`
	Server Server `json:"server"`
	// CPUProfile and MemProfile are what the names of profiles begin with, or empty.
	CPUProfile string `json:"cpuProfile,omitempty"`
	MemProfile string `json:"memProfile,omitempty"`
}

// Server is how the server is reached.
type Server struct {
	Host       string `json:"host"`
	Token      string `json:"token,omitempty"`
	CAData     []byte `json:"caData,omitempty"`
	ServerName string `json:"serverName,omitempty"`
	// CertData and KeyData are a client certificate and its key.
	CertData []byte `json:"certData,omitempty"`
	KeyData  []byte `json:"keyData,omitempty"`
	// Discovery says whether the server has it.
	Discovery bool `json:"discovery,omitempty"`
}

// Reached returns the server that cfg reaches, which has discovery.
func Reached(cfg *rest.Config) Server {
	return Server{
		Host: cfg.Host, Token: cfg.BearerToken, CAData: cfg.CAData, ServerName: cfg.ServerName,
		CertData: cfg.CertData, KeyData: cfg.KeyData, Discovery: true,
	}
}

// Config has no limit on the client's side: what is measured should not wait.
func (s Server) Config() *rest.Config {
	return &rest.Config{
		Host: s.Host, BearerToken: s.Token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CAData, ServerName: s.ServerName, CertData: s.CertData, KeyData: s.KeyData},
	}
}

// Figures are what was measured in one run. CPU is that of the process, by user and
// system together.
type Figures struct {
	Objects int `json:"objects"`
	Events  int `json:"events"`

	SyncCPU  time.Duration `json:"syncCPUNanos"`
	SyncWall time.Duration `json:"syncWallNanos"`
	// SyncAllocs and SyncBytes are what was allocated until the cache was filled.
	SyncAllocs uint64 `json:"syncAllocs"`
	SyncBytes  uint64 `json:"syncAllocatedBytes"`
	// RetainedHeap is by how much the live heap grew.
	RetainedHeap int64 `json:"retainedHeapBytes"`
	// PeakRSS is the most memory that the process had until the cache was filled, and
	// BaselineRSS what it had before it began.
	PeakRSS     int64 `json:"peakRSSBytes"`
	BaselineRSS int64 `json:"baselineRSSBytes"`
	// GCCPU is what one full garbage collection takes while the cache is there.
	GCCPU time.Duration `json:"gcCPUNanos"`

	EventCPU  time.Duration `json:"eventCPUNanos"`
	EventWall time.Duration `json:"eventWallNanos"`
}
