{{- $adapters := get $machine.capacity "vpc.amazonaws.com/efa" | int64 }}
{{- if gt (.Values.network.adapters | int64) $adapters }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.adapters: %s has %d; use at most that, or null" .Values.machineType $adapters)) }}
{{- end }}
{{- if and .Values.network.adapters (eq .Values.network.interface "tcp") }}
{{- $_ := set $check "problems" (append $check.problems "network.adapters: network.interface is tcp; use efa, or leave adapters null") }}
{{- end }}
{{- $given := $launcher.resources | default (dict) }}
{{- $resources := merge (dict) ($given.requests | default (dict)) ($given.limits | default (dict)) }}
{{- if and .Values.network.hugePages (not (or $resources.cpu $resources.memory)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.hugePages: Kubernetes gives them only to pods that ask for cpu or memory too; set launchers.%s.resources.requests" .Values.launcher)) }}
{{- end }}
