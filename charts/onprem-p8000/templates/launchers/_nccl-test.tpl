{{/*
nccl-test: Measures NCCL's collectives between the GPUs of a run, or finds the machine whose pairs are slow.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "onprem-p8000.launcher.nccl-test.config" }}{{ end }}
{{- define "onprem-p8000.launcher.nccl-test.args" }}
{{- $own := get .Values.launchers "nccl-test" }}
{{- $floors := dict }}
{{- $whole := eq .Run.gpusPerNode (int64 .Run.machine.gpus) }}
{{- if and $whole (gt (int64 .Values.nodes) 1) (eq $own.mode "sweep") }}
{{- end }}
{{- range $operation, $busbw := $own.minBusbw }}
{{- $_ := set $floors $operation (list (toString $busbw) "0" "launchers.nccl-test.minBusbw") }}
{{- end }}
{{- range $name, $value := dict "mode" $own.mode "factor" (int64 $own.factor) "iterations" (int64 $own.iterations) "warmup" (int64 $own.warmup)
  "type" $own.dataType "slow-below" (int64 $own.slowBelow) }}
- --{{ $name }}
- {{ toString $value | toJson }}
{{- end }}
{{- if eq $own.mode "calibrate" }}
- --machine
- {{ .Values.machineType }}
{{- end }}
- --operations
{{- range $own.operations }}
- {{ . }}
{{- end }}
- --sizes
- {{ toJson $own.minBytes }}
- {{ toJson $own.maxBytes }}
{{- range $operation := $own.operations }}
{{- with get $floors $operation }}
- --floor
- {{ $operation }}
{{- range . }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- define "onprem-p8000.launcher.nccl-test.env" }}
# The machine's own name, which the report of a slow machine contains.
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}
{{- define "onprem-p8000.launcher.nccl-test.mounts" }}{{ end }}
{{- define "onprem-p8000.launcher.nccl-test.files" }}{{ end }}
{{- define "onprem-p8000.launcher.nccl-test.beforeLaunch" }}{{ end }}
{{- define "onprem-p8000.launcher.nccl-test.launch" }}{{ end }}
{{- define "onprem-p8000.launcher.nccl-test.beforeRank" }}{{ end }}
{{- define "onprem-p8000.launcher.nccl-test.programs" }}
calibration.py: {{ .Files.Get "files/launchers/nccl-test/calibration.py" | trim | toJson }}
collectives.py: {{ .Files.Get "files/launchers/nccl-test/collectives.py" | trim | toJson }}
pairwise.py: {{ .Files.Get "files/launchers/nccl-test/pairwise.py" | trim | toJson }}
table.py: {{ .Files.Get "files/launchers/nccl-test/table.py" | trim | toJson }}
{{ base .Run.launcher.program }}: {{ .Files.Get "files/launchers/nccl-test/program.py" | trim | toJson }}
{{- end }}
