# Nsight Systems runs around a profiled process, as which this script starts once more, and ends with its capture range.
if [[ " RANKS " == *" $RANK "* && -z ${PROFILED-} ]]; then
  export PROFILED=yes
  exec nsys profile -s none -t "nvtx,cuda" --capture-range=cudaProfilerApi --capture-range-end=stop \
    --force-overwrite=true -o "$RUN_DIRECTORY/rank-$RANK" bash /etc/chartgen/rank.sh
fi
