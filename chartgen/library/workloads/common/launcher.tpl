{{/* <%= launcher.name %>: <%= launcher.description %> */}}
<% for file, name in definitions(launcher).items() %>
{{- define "<%= chart %>.launcher.<%= launcher.name %>.<%= name %>" }}
<%= part(launcher, file) %>
{{- end }}
<% endfor %>
