package objects

import (
	"fmt"
	"strconv"
	"time"
)

// IPAMBlock is the Go type of an IPAMBlock, with Calico's fields.
type IPAMBlock = resource[blockFields, struct{}]

type blockFields struct {
	Affinity                    *string           `json:"affinity,omitempty"`
	Allocations                 []*int            `json:"allocations"`
	Attributes                  []attributes      `json:"attributes"`
	CIDR                        string            `json:"cidr"`
	Deleted                     bool              `json:"deleted"`
	SequenceNumber              uint64            `json:"sequenceNumber"`
	SequenceNumberForAllocation map[string]uint64 `json:"sequenceNumberForAllocation"`
	StrictAffinity              bool              `json:"strictAffinity"`
	Unallocated                 []int             `json:"unallocated"`
}

type attributes struct {
	HandleID  *string           `json:"handle_id,omitempty"`
	Secondary map[string]string `json:"secondary,omitempty"`
}

const (
	blockSize     = 64
	blocksPerNode = 4
)

// ipamBlock returns Calico's record of 64 addresses of a node, of which about thirty are
// in use.
func ipamBlock(i int) object {
	r := newRandom(blockSeed, i)
	host := i / blocksPerNode
	node := fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", host>>16&255, host>>8&255, host&255)
	second, third, fourth := 64+i>>10&255, i>>2&255, i&3*blockSize
	created := r.Ago(now, 400)
	block := object{
		"apiVersion": "crd.projectcalico.org/v1",
		"kind":       "IPAMBlock",
		"metadata": object{
			"name":              fmt.Sprintf("10-%d-%d-%d-26", second, third, fourth),
			"uid":               r.UID(),
			"resourceVersion":   FormatVersion(Version(i)),
			"generation":        int64(r.Between(1, 900)),
			"creationTimestamp": timestamp(created),
			"annotations":       object{"projectcalico.org/metadata": fmt.Sprintf(`{"uid":%q,"creationTimestamp":null}`, r.UID())},
		},
		"spec": blockSpec(r, node, fmt.Sprintf("10.%d.%d.%d/26", second, third, fourth)),
	}
	block["metadata"].(object)["managedFields"] = managedFields(block, []writer{{
		manager: "calico-ipam", operation: "Update", at: created, owns: []path{{"metadata", "annotations"}, {"spec"}},
	}})
	return block
}

// blockSpec returns the addresses of a block: which are in use, by which pod, and since
// which version of the block.
func blockSpec(r random, node, cidr string) object {
	sequence := 1_700_000_000_000_000_000 + r.Int64N(1<<50)
	inUse := r.Between(26, 34)
	ordinals := r.Perm(blockSize)
	allocations, attributes := make(list, blockSize), make(list, inUse)
	sequences, unallocated := object{}, list{}
	for k, ordinal := range ordinals {
		if k >= inUse {
			unallocated = append(unallocated, int64(ordinal))
			continue
		}
		allocations[ordinal] = int64(k)
		attributes[k] = blockAttribute(r, node)
		sequences[strconv.Itoa(ordinal)] = sequence - r.Int64N(int64(time.Hour))
	}
	return object{
		"affinity": "host:" + node, "allocations": allocations, "attributes": attributes, "cidr": cidr, "deleted": false,
		"sequenceNumber": sequence, "sequenceNumberForAllocation": sequences, "strictAffinity": false, "unallocated": unallocated,
	}
}

// blockAttribute returns the pod that uses an address.
func blockAttribute(r random, node string) object {
	app := sampleCluster.app(r)
	return object{
		"handle_id": "k8s-pod-network." + r.Hex(64),
		"secondary": object{
			"namespace": app.Namespace,
			"node":      node,
			"pod":       fmt.Sprintf("%s-%s-%s", app.Name, r.Hex(9), r.Suffix()),
		},
	}
}
