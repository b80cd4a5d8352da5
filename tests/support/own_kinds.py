"""Two workload kinds of a user's folder, from the documentation alone: an AppWrapper and a LeaderWorkerSet."""

from __future__ import annotations

from pathlib import Path

from userlib import library, write

# project-codeflare/appwrapper v1.1.2, api/v1beta2 and the site's samples: its phases, and a Job and its Service inside.
_APPWRAPPER = """\
description: An AppWrapper of an Indexed Job and its Service
container: workload
kind: AppWrapper
api: workload.codeflare.dev/v1beta2
rankLabel: batch.kubernetes.io/job-completion-index
requires: [storage]
queues: [kueue]
run:
  plural: appwrappers
  podOwner: Job
  controller: {namespace: appwrapper-system, images: [appwrapper], install: https://project-codeflare.github.io/appwrapper/}
  pods: [{each: components, object: template}]
  ends: {phase: [phase], finished: [Succeeded], failed: [Failed], restarts: resettingCount}
sources: [project-codeflare/appwrapper v1.1.2]
"""
_WRAPPED = """\
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-0.%s" .Run.name .Run.name }}
{{- end }}
{{- define "<%= chart %>.kindSpec" -}}
components:
  - template:
      apiVersion: v1
      kind: Service
      metadata:
        name: {{ .Run.name }}
      spec:
        clusterIP: None
        publishNotReadyAddresses: true
        selector:
          run: {{ .Run.name }}
  - template:
      apiVersion: batch/v1
      kind: Job
      metadata:
        name: {{ .Run.name }}
      spec:
<%= job(8) %>
{{- end }}
"""
# kubernetes-sigs/lws v0.7.0, api/leaderworkerset/v1: it serves, so its pods have no end.
_SET = """\
description: A LeaderWorkerSet of one group
container: workload
kind: LeaderWorkerSet
api: leaderworkerset.x-k8s.io/v1
rankLabel: leaderworkerset.sigs.k8s.io/worker-index
requires: [storage]
queues: [kueue]
run:
  plural: leaderworkersets
  podOwner: StatefulSet
  controller: {namespace: lws-system, images: [lws], install: https://lws.sigs.k8s.io/docs/installation/}
  pods: [{template: leaderWorkerTemplate.workerTemplate, count: [replicas, leaderWorkerTemplate.size]}]
sources: [kubernetes-sigs/lws v0.7.0]
"""
_GROUP = """\
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-0.%s" .Run.name .Run.name }}
{{- end }}
{{- define "<%= chart %>.kindSpec" -}}
replicas: 1
leaderWorkerTemplate:
  size: {{ .Run.nodes }}
  workerTemplate:
    {{- include "<%= chart %>.pod" . | replace "\\n  restartPolicy: Never" "" | nindent 4 }}
{{- end }}
"""
KINDS = {"appwrapper": "AppWrapper", "leader-worker-set": "LeaderWorkerSet"}


def own_kinds(folder: Path) -> Path:
    """Write the folder with both kinds and the target `box`, which has a queue for those that take it."""
    library(folder, {"mine/labels.yaml": "example.com/team: a\n"})
    target = folder / "targets" / "box.yaml"
    target.write_text(target.read_text().replace("mine]", "mine, kueue]"))
    for name, kind, template in (("appwrapper", _APPWRAPPER, _WRAPPED), ("leader-worker-set", _SET, _GROUP)):
        write(folder / "workloads" / name, {"workload.yaml": kind, "templates/_workload.tpl": template})
    return folder
