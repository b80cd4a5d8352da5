{{- $release := regexFind "^nvcr[.]io/nvidia/nemo:[0-9]{2}[.][0-9]{2}" $launcher.image }}
{{- if and (gt (regexFind "[0-9]{2}[.][0-9]{2}$" $release) "<%= compat().images[0].newest %>") (not (get .Values.launchers "nemo-1").program) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "launchers.nemo-1.image: %s has no NeMo 1 program; use nvcr.io/nvidia/nemo:<%= compat().images[0].newest %> or older, or another launcher" $launcher.image)) }}
{{- end }}
