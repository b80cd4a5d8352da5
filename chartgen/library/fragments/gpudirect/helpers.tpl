{{/* Properties of each version of the plugin, as YAML; data/compat.yaml has the sources. */}}
{{- define "<%= chart %>.gpudirectVersions" -}}
<% for fragment in target.fragments if fragment.name in compat().plugins %>
<% for row in compat().plugins[fragment.name] %>
<%= row.plugin %>: {daemons: <%= row.daemons | quoted %>,<% for key in ("daemonFlags", "build", "probe") if key in row %> <%= key %>: <%= row[key] | quoted %>,<% endfor %>

  settings: <%= row.settings | flow(2) %>}
<% endfor %>
<% endfor %>
{{- end }}

{{/* Interfaces of a pod outside the host network, as JSON: eth0 for all else, eth1 and on for the GPUs. */}}
{{- define "<%= chart %>.gpudirectInterfaces" -}}
{{- $interfaces := list (dict "interfaceName" "eth0" "network" "default") }}
{{- range $i, $network := .Values.network.subnetworks }}
{{- $interfaces = append $interfaces (dict "interfaceName" (printf "eth%d" (add1 $i)) "network" $network) }}
{{- end }}
{{- toJson $interfaces }}
{{- end }}

{{/* Networks of the pods, and how the names of their VPC networks end. */}}
{{- define "<%= chart %>.networkNames" -}}
{{- range $i, $name := .Values.network.subnetworks }}
- {name: {{ $name | quote }}, mode: NetDevice, vpc: {{ $i | quote }}, subnet: {{ $i | quote }}}
{{- end }}
{{- end }}

{{/* Devices that the daemon opens, as YAML. Takes the names of those that only one transport has. */}}
{{- define "<%= chart %>.gpudirectDevices" -}}
{{- $devices := list }}
{{- range $gpu := until 8 }}{{ $devices = append $devices (printf "nvidia%d" $gpu) }}{{ end }}
{{- range concat $devices (list "nvidiactl" "nvidia-uvm") . }}
- path: /dev/{{ . }}
{{- end }}
{{- end }}

{{/*
Script of the daemon's container; its arguments are the daemon's command. As process 1 of its container the daemon would
not feel SIGTERM, and keep the pod for its whole grace period: bash passes the signal on and ends what does not end.
*/}}
{{- define "<%= chart %>.gpudirectWatch" -}}
daemon=
stop() {
  kill -TERM "$daemon" || exit 0
  for ((tenth = 0; tenth < 50; tenth++)); do
    kill -0 "$daemon" || exit 0
    sleep 0.1
  done
  kill -KILL "$daemon"
  exit 0
} 2>/dev/null
trap stop TERM
"$@" &
daemon=$!
wait "$daemon"
{{- end }}
