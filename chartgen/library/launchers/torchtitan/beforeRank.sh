{{- if (get .Values.launchers "torchtitan").files }}
# Recipes among the user's files are modules, beside those of the image.
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}/etc/chartgen
{{- end }}
