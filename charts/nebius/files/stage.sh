# Copies the data to this machine's own disk; what an earlier run has copied completely stays.
stage() {
  local from=$1 to=/scratch$1
  if [[ ! -s $from ]]; then
    echo "chartgen: data.stage: $from is missing or empty; prepare the data first" >&2
    return 1
  fi
  if [[ -e $to && $(stat -c '%s %Y' "$to") == "$(stat -c '%s %Y' "$from")" ]]; then return; fi
  echo "chartgen: copying $from to $to"
  mkdir -p "${to%/*}"
  cp --preserve=timestamps "$from" "$to.part"
  mv "$to.part" "$to"
}
# The lock makes pods wait that share a machine; it ends with the copy, not with the run.
exec {lock}>/scratch/.staging
flock "$lock"
while IFS= read -r prefix; do
  stage "$prefix.bin"
  stage "$prefix.idx"
done <<<"$STAGED_DATA"
exec {lock}>&-
