{{/* Launchers: what each does, starts and can train in. */}}
{{- define "<%= chart %>.launchers" -}}
<% for launcher in target.launchers %>
<%= launcher.name | scalar %>:
  task: <%= launcher.task %>
  processes: <%= launcher.processes %>
  program: <%= launcher.program | quoted %>
<% if launcher.same_as %>
  sameAs: <%= launcher.same_as %>
<% else %>
  image: <%= launcher.image | quoted %>
<% endif %>
  precisions: <%= launcher.precisions | quoted %>
  owns: <%= launcher.owns | quoted %>
  defaults: <%= launcher.defaults | quoted %>
<% if launcher.step_line %>
  stepLine: <%= launcher.step_line | quoted %>
<% endif %>
<% if launcher.own_model %>
  ownModel: <%= launcher.own_model %>
<% endif %>
<% endfor %>
{{- end }}

{{/* Release of NVIDIA's NeMo image as a number, such as 2606; launchers.<name>.release where the image is another; 0 = unknown. */}}
{{- define "<%= chart %>.imageRelease" -}}
{{- $tag := regexFind "(^|/)nvidia/nemo:[0-9]{2}[.][0-9]{2}([^0-9]|$)" ((include "<%= chart %>.launcher" . | fromJson).image | default "") }}
{{- $release := (get .Values.launchers .Values.launcher).release | default (regexFind "[0-9]{2}[.][0-9]{2}" $tag) }}
{{- replace "." "" $release | default "0" }}
{{- end }}

{{/* The chosen launcher, as JSON; its values win over its defaults. The root keeps it: Helm takes long to parse the list. */}}
{{- define "<%= chart %>.launcher" -}}
{{- if not .launcher }}
{{- $launcher := get (include "<%= chart %>.launchers" . | fromYaml) .Values.launcher }}
{{- range $key, $value := get .Values.launchers .Values.launcher }}
{{- if $value }}{{ $_ := set $launcher $key $value }}{{ end }}
{{- end }}
{{- if not $launcher.image }}
{{- with $launcher.sameAs }}
{{- $_ := set $launcher "image" ((get $.Values.launchers .).image | default (get (include "<%= chart %>.launchers" $ | fromYaml) .).image) }}
{{- end }}
{{- end }}
{{- $_ := set . "launcher" (toJson $launcher) }}
{{- end }}
{{- .launcher }}
{{- end }}
