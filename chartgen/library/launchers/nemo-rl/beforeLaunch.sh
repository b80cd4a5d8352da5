{{- $own := get .Values.launchers "nemo-rl" }}
# NeMo RL hands its variables on to every process. There, what the machine's own software has set counts.
for name in LD_LIBRARY_PATH "${!NCCL_@}"; do
  if [[ " ${release_variables[*]} " != *" $name "* ]]; then unset "$name"; fi
done
# Its recipes name files by their paths in its own folder.
cd "${1%/examples/*}"
{{- if and .Values.checkpoint.enabled .Values.run.deadlineSeconds }}
# KubeRay ends the attempt {{ int64 .Values.run.deadlineSeconds }} s after it began: just before the head's files were written.
# NeMo RL counts from now on, as days, hours, minutes and seconds.
began=$(stat -L -c %Y /etc/chartgen/driver.sh)
left=$(({{ int64 .Values.run.deadlineSeconds }} - {{ int64 $own.saveSeconds }} - $(date +%s) + began))
if ((left < 0)); then left=0; fi
printf -v left '%02d:%02d:%02d:%02d' $((left / 86400)) $((left / 3600 % 24)) $((left / 60 % 60)) $((left % 60))
set -- "$@" "++checkpointing.checkpoint_must_save_by='$left'"
{{- end }}
