{{/*
<%= launcher.name %>: <%= launcher.description %>.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
<% for name, text in launcher_parts(launcher).items() if text or name in used_parts %>
<% if text %>
{{- define "<%= chart %>.launcher.<%= launcher.name %>.<%= name %>" }}
<%= text %>
{{- end }}
<% else %>
{{- define "<%= chart %>.launcher.<%= launcher.name %>.<%= name %>" }}{{ end }}
<% endif %>
<% endfor %>
