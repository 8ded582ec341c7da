package objects

import (
	"fmt"
	"time"
)

// snapshot is like VolumeSnapshot.
func snapshot(d *draft) {
	claim := fmt.Sprintf("data-%s-%d", d.app.name, d.IntN(6))
	d.name = fmt.Sprintf("%s-%s", claim, d.created.Format("200601021504"))
	d.deployed = false
	d.version = 1
	d.labels["backup.example.com/schedule"] = d.pick("hourly", "daily", "weekly")
	d.labels["velero.io/backup-name"] = fmt.Sprintf("%s-%s", d.pick("nightly", "weekly"), d.created.Format("20060102150405"))
	d.annotations["snapshot.storage.kubernetes.io/volumesnapshot-being-created"] = "yes"
	d.finalizers = list{"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection", "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"}
	d.spec = object{"source": object{"persistentVolumeClaimName": claim}, "volumeSnapshotClassName": d.pick("ebs-csi", "ebs-csi", "rook-ceph-block")}
	d.controller = writer{manager: "snapshot-controller"}
	d.status = object{
		"boundVolumeSnapshotContentName": "snapcontent-" + d.uid(),
		"creationTime":                   timestamp(d.created.Add(time.Duration(d.IntN(40)) * time.Second)),
		"readyToUse":                     true,
		"restoreSize":                    d.pick("8Gi", "10Gi", "20Gi", "50Gi", "100Gi", "500Gi", "1Ti"),
	}
	if d.chance(.08) {
		d.status["readyToUse"] = false
		d.status["error"] = object{
			"time": timestamp(d.settled),
			"message": fmt.Sprintf("Failed to check and update snapshot content: failed to take snapshot of the volume vol-%s: \"rpc error: code = %s desc = "+
				"Could not create snapshot %q: operation error EC2: CreateSnapshot, https response error StatusCode: %d, RequestID: %s, api error RequestLimitExceeded: "+
				"Request limit exceeded.\"", d.hex(17), d.pick("Internal", "DeadlineExceeded"), "snapshot-"+d.uid(), d.between(500, 503), d.uid()),
		}
	}
}
