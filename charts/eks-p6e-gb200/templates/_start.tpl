{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "eks-p6e-gb200.start" -}}
{{- $variables := list }}
{{- range .Run.env | fromYamlArray }}{{ $variables = append $variables .name }}{{ end -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" (join " " $variables) | trim }}
{{- if .Run.gpu }}
{{- if and .Run.mustProgress (include "eks-p6e-gb200.attempt" .) (not .Values.run.spares) }}

{{ .Files.Get "files/progress.sh" | trim }}
{{ end }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if .Run.watched }}

# A machine that ends before its program starts leaves a black box too.
trap 'python3 /etc/chartgen/watch.py --ended "$?" || true' EXIT
{{- end }}
{{- with .Run.examination }}

# A machine that is not fit ends before others wait for it.
{{ include "eks-p6e-gb200.examine" $ }}
{{- end }}
{{- if .Run.staged }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if .Run.gpu }}
{{- if include "eks-p6e-gb200.efaAdapters" . | int64 }}
# EFA: NCCL uses it through the plugin of aws-ofi-nccl, which images keep in different places. It must be found before
# other plugins of the image; where it is not found at all, NCCL would use TCP without a word.
folders=(/opt/amazon/ofi-nccl/lib{/x86_64-linux-gnu,/aarch64-linux-gnu,} /opt/amazon/aws-ofi-nccl/lib /opt/aws-ofi-nccl{/install,}/lib)
if [[ -n ${EFA_PLUGIN-} ]]; then folders=("$EFA_PLUGIN"); fi
plugin=
for folder in "${folders[@]}"; do
  if [[ -e $folder/libnccl-net.so || -e $folder/libnccl-net-ofi.so ]]; then plugin=$folder && break; fi
done
[[ -n $plugin ]] || refuse "no EFA plugin for NCCL (aws-ofi-nccl) in ${folders[*]}; use an image with one, or set network.plugin"
export LD_LIBRARY_PATH="$plugin:/opt/amazon/efa/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# NVIDIA's images preset another plugin from NeMo 26.08 on. A name is found by every NCCL; a path only by 2.21 and newer, as
# all images have that preset one.
if [[ " ${release_variables[*]} " != *" NCCL_NET_PLUGIN "* ]]; then
  if [[ -e $plugin/libnccl-net-ofi.so ]]; then
    export NCCL_NET_PLUGIN=ofi
  elif [[ -n ${NCCL_NET_PLUGIN-} ]]; then
    export NCCL_NET_PLUGIN=$plugin/libnccl-net.so
  fi
fi
{{- end }}
{{- end }}
{{- with include (printf "eks-p6e-gb200.launcher.%s.beforeLaunch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- if .Run.exporter }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq .Run.launcher.processes "gpu" }}
{{ include "eks-p6e-gb200.launch" . | trim }}
{{- else if eq .Run.launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "eks-p6e-gb200.interpreter" .Run.launcher.program }} "$@"
{{- end }}
{{- end }}

{{- define "eks-p6e-gb200.examine" -}}
python3 -u /etc/chartgen/examine.py "$RUN_DIRECTORY/machines" {{ .Run.examination }} 2>&1 | tee -a "$CHARTGEN_PRELUDE"
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "eks-p6e-gb200.rankProgram" }}
{{- include "eks-p6e-gb200.beforeProcess" . }}
{{- if and .Run.examination .Run.restarts }}

{{ .Files.Get "files/examined.sh" | replace "EXAMINE" (include "eks-p6e-gb200.examine" .) | trim }}
{{- end }}
{{- with include (printf "eks-p6e-gb200.launcher.%s.beforeRank" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- $watch := "" }}
{{- if or .Run.watched .Run.exporter }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "eks-p6e-gb200.interpreter" .Run.launcher.program }} "$@"
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "eks-p6e-gb200.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}
