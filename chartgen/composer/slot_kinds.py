"""The slots: every file of a fragment that fills a part of a pod, a run's object or a script.

A slot file is named after the Kubernetes API field that it fills. Its identity key is the field's `patchMergeKey` in
the Kubernetes API (k8s.io/api core/v1 types), so that two fragments clash exactly where kubectl would merge.
"""

from __future__ import annotations

from typing import NamedTuple


class SlotKind(NamedTuple):
    """One slot.

    Args:
        shape: Its content: `list`, `map`, `shell` or `template`.
        meaning: What it fills.
        example: A complete slot file; tests parse it.
        key: The key that identifies list items.
        keys: The keys of an item; empty = all that Kubernetes knows, which lint checks where they are rendered.
    """

    shape: str
    meaning: str
    example: str
    key: str = ""
    keys: tuple[str, ...] = ()


SLOTS: dict[str, SlotKind] = {
    "volumes.yaml": SlotKind(
        "list",
        "volumes of the pod",
        "- name: fabric-settings\n  hostPath:\n    path: /opt/fabric/topology.xml\n    type: File\n",
        "name",
    ),
    "initContainers.yaml": SlotKind(
        "list",
        "containers that run before the program; with `restartPolicy: Always` also beside it (a sidecar)",
        "- name: fabric-daemon\n  image: registry.example.com/fabric:1.2\n  restartPolicy: Always\n",
        "name",
    ),
    "containers.yaml": SlotKind(
        "list",
        "more containers of the pod; the pod only ends when they end, so prefer a sidecar in initContainers.yaml",
        "- name: monitor\n  image: registry.example.com/monitor:1.2\n",
        "name",
    ),
    "resourceClaims.yaml": SlotKind(
        "list",
        "claims of the pod on devices (dynamic resource allocation); the program's container uses all of them",
        "- name: adapters\n  resourceClaimTemplateName: adapters-of-a-machine\n",
        "name",
    ),
    "tolerations.yaml": SlotKind(
        "list",
        "tolerations of the pod, and of the queue's flavor in the setup chart",
        "- key: example.com/gpu\n  operator: Exists\n  effect: NoSchedule\n",
    ),
    "affinity.yaml": SlotKind(
        "map",
        "affinity of the pod, in addition to the user's",
        "nodeAffinity:\n"
        "  requiredDuringSchedulingIgnoredDuringExecution:\n"
        "    nodeSelectorTerms:\n"
        "      - matchExpressions:\n"
        "          - {key: example.com/fabric, operator: Exists}\n",
    ),
    "nodeSelector.yaml": SlotKind(
        "map",
        "labels of the machines that the pod may use, and labels of the queue's flavor; the user's values win",
        "example.com/machine: {{ .Values.machineType | quote }}\n",
    ),
    "podAnnotations.yaml": SlotKind(
        "map",
        "annotations of the pod; the user's values win",
        'k8s.v1.cni.cncf.io/networks: {{ join "," .Values.network.attachments | quote }}\n',
    ),
    "podLabels.yaml": SlotKind("map", "labels of the pod; the user's values win", 'example.com/fabric: "true"\n'),
    "podSpec.yaml": SlotKind(
        "map",
        "other fields of the pod's spec; not volumes, containers and what else has a slot of its own",
        "{{- if .Values.network.hostNetwork }}\nhostNetwork: true\ndnsPolicy: ClusterFirstWithHostNet\n{{- end }}\n",
    ),
    "env.yaml": SlotKind(
        "list",
        "environment of the program; two fragments may not set one variable to different values",
        "# NCCL stops instead of falling back to TCP.\n- name: NCCL_NET\n  value: IB\n",
        "name",
        ("name", "value", "valueFrom"),
    ),
    "volumeMounts.yaml": SlotKind(
        "list",
        "mounts of the program's container",
        "- name: fabric-settings\n  mountPath: /etc/fabric/topology.xml\n  readOnly: true\n",
        "mountPath",
    ),
    "resourceLimits.yaml": SlotKind(
        "map",
        "devices that the program's container requests on each machine; the queue's quota covers them",
        'example.com/rdma: "1"\n',
    ),
    "securityContext.yaml": SlotKind(
        "map",
        "security context of the program's container; each privilege needs a reason in fragment.yaml",
        "capabilities:\n  add: [IPC_LOCK]\n",
    ),
    "beforeLaunch.sh": SlotKind(
        "shell",
        "shell that runs on each machine before the program; exit 1 with a message ends the run",
        'if [[ ! -e /dev/fabric0 ]]; then\n  echo "the pod has no fabric adapter" >&2\n  exit 1\nfi\n',
    ),
    "beforeRank.sh": SlotKind(
        "shell",
        "shell that runs in each process of a GPU program before it; LOCAL_RANK is its number on the machine",
        'export FABRIC_PORT="$((LOCAL_RANK / 4))"\n',
    ),
    "labels.yaml": SlotKind(
        "map",
        "labels of the run's object, such as the queue's",
        "kueue.x-k8s.io/queue-name: {{ .Values.queue.name | quote }}\n",
    ),
    "annotations.yaml": SlotKind(
        "map",
        "annotations of the run's object",
        "example.com/reservation: {{ .Values.reservation | quote }}\n",
    ),
    "workloadSpec.yaml": SlotKind(
        "map",
        "fields of the spec of the run's object; state the workload kinds in fragment.yaml",
        "queue: {{ .Values.queue.name | quote }}\n",
    ),
    "validate.tpl": SlotKind(
        "template",
        "template text that appends problems to $check.problems; for what rules.yaml cannot express",
        '{{- if and .Values.network.hostNetwork (ne .Release.Namespace "training") }}\n'
        '{{- $_ := set $check "problems" (append $check.problems "hostNetwork is only for namespace training") }}\n'
        "{{- end }}\n",
    ),
    "helpers.tpl": SlotKind(
        "template",
        "definitions of named templates, for the fragment's own slots and manifests",
        '{{/* Adapters of a machine. */}}\n{{- define "<%= chart %>.adapters" -}}\n'
        "{{- .Values.network.adapters | default 8 }}\n{{- end }}\n",
    ),
}
