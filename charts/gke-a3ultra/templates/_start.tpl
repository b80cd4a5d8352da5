{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "gke-a3ultra.start" -}}
{{- $variables := list }}
{{- range .Run.env | fromYamlArray }}{{ $variables = append $variables .name }}{{ end -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" (join " " $variables) | trim }}
{{- if .Run.gpu }}
{{- if and .Run.mustProgress (include "gke-a3ultra.attempt" .) (not .Values.run.spares) }}

{{ .Files.Get "files/progress.sh" | trim }}
{{ end }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if .Run.watched }}

# A machine that ends before its program starts leaves a black box too.
trap 'python3 /etc/chartgen/watch.py --ended "$?" || true' EXIT
{{- end }}
{{- with .Run.examination }}

# A machine that is not fit ends before others wait for it.
{{ include "gke-a3ultra.examine" $ }}
{{- end }}
{{- if .Run.staged }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if .Run.gpu }}
# gIB: its libraries must be found before those of the image, and what an image has in CUDA's compat folder before the machine's
# driver, as Google's launchers order them. Google changes gIB's settings from version to version.
export LD_LIBRARY_PATH="/usr/local/cuda/compat/lib:/usr/local/gib/lib64:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
{{- if include "gke-a3ultra.gibInImage" . }}
[[ -d /usr/local/gib/lib64 ]] ||
  refuse 'no /usr/local/gib/lib64; on this machine type the image contains gIB (nccl-gib-plugins) and DOCA-OFED'
# Google's recipes for this machine type go without the script; whether each version has it is not documented.
if [[ -r /usr/local/gib/scripts/set_nccl_env.sh ]]; then source_profile /usr/local/gib/scripts/set_nccl_env.sh; fi
{{- else }}
source_profile /usr/local/gib/scripts/set_nccl_env.sh
{{- end }}
{{- end }}
{{- with include (printf "gke-a3ultra.launcher.%s.beforeLaunch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- if .Run.exporter }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq .Run.launcher.processes "gpu" }}
{{ include "gke-a3ultra.launch" . | trim }}
{{- else if eq .Run.launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "gke-a3ultra.interpreter" .Run.launcher.program }} "$@"
{{- end }}
{{- end }}

{{- define "gke-a3ultra.examine" -}}
python3 -u /etc/chartgen/examine.py "$RUN_DIRECTORY/machines" {{ .Run.examination }} 2>&1 | tee -a "$CHARTGEN_PRELUDE"
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "gke-a3ultra.rankProgram" }}
{{- include "gke-a3ultra.beforeProcess" . }}
{{- if and .Run.examination .Values.run.spares }}

{{ .Files.Get "files/examined.sh" | replace "EXAMINE" (include "gke-a3ultra.examine" .) | trim }}
{{- end }}
{{- if .Run.gpu }}
# Half of the machine's GPUs are at each of its two NUMA nodes. Memory comes from the node of the CPUs by default: numactl, which
# Google's privileged recipes use, needs SYS_NICE under the runtime's seccomp profile.
node=/sys/devices/system/node/node$((LOCAL_RANK / {{ div .Run.machine.gpus 2 }}))
if ! { taskset -cp "$(cat "$node/cpulist")" "$$"; } &>/dev/null && mkdir "${CHARTGEN_PROCESSES:-/run/chartgen/ranks}.unbound" 2>/dev/null; then
  echo "chartgen: the processes are not bound to NUMA nodes: no $node/cpulist that taskset can use" >&2
fi
{{- end }}
{{- with include (printf "gke-a3ultra.launcher.%s.beforeRank" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- $watch := "" }}
{{- if or .Run.watched .Run.exporter }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "gke-a3ultra.interpreter" .Run.launcher.program }} "$@"
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "gke-a3ultra.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}
