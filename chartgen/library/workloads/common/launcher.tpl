{{/* <%= launcher.name %>: <%= launcher.description %> */}}
<% for file, name in launcher.definitions.items() %>
{{- define "<%= chart %>.launcher.<%= launcher.name %>.<%= name %>" }}
<%= part(launcher, file) %>
{{- end }}
<% endfor %>
