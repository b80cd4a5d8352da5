# Copies the data to this machine's own disk; what an earlier run has copied completely stays. The disk outlives its
# tenants, so a link there may lead to anyone's files, and a file may contain anything.
no_links() {
  local path=$1
  while [[ $path == /scratch/* ]]; do
    if [[ -L $path ]]; then
      echo "chartgen: data.stage: $path is a link; remove it" >&2
      return 1
    fi
    path=${path%/*}
  done
}
# Whether a file is the copy of another one: of the same size and time, written by this user alone, and the same in
# blocks at random places. To compare all of it would take as long as to copy it.
copied() {
  local size block
  size=$(stat -c %s "$1")
  [[ -n $(find "$2" -maxdepth 0 -type f -user "$(id -u)" ! -perm /022 2>/dev/null) ]] || return 1
  [[ $(stat -c '%s %Y' "$1") == "$(stat -c '%s %Y' "$2")" ]] || return 1
  for ((block = 0; block < 16; block++)); do
    cmp --quiet --bytes=1048576 --ignore-initial=$(((RANDOM << 30 | RANDOM << 15 | RANDOM) % size)) "$1" "$2" || return 1
  done
}
stage() {
  local from=$1 to=/scratch$1
  if [[ ! -s $from ]]; then
    echo "chartgen: data.stage: $from is missing or empty; prepare the data first" >&2
    return 1
  fi
  no_links "$to"
  if copied "$from" "$to"; then return; fi
  echo "chartgen: copying $from to $to"
  mkdir -p "${to%/*}"
  (umask 022 && cp --no-target-directory --preserve=timestamps --remove-destination "$from" "$to.part")
  mv --no-target-directory "$to.part" "$to"
}
# The lock makes this user's pods wait that share a machine; it ends with the copy, not with the run. A pipe would keep them
# for ever, and so would another user who may open the file.
staging=/scratch/.staging-$(id -u)
no_links "$staging"
if [[ -e $staging && ! (-f $staging && -O $staging && $(stat -c %a "$staging") == *00) ]]; then
  echo "chartgen: data.stage: $staging is not a file of this user alone; remove it" >&2
  exit 1
fi
(umask 077 && : >>"$staging")
exec {lock}>>"$staging"
flock "$lock"
while IFS= read -r prefix; do
  stage "$prefix.bin"
  stage "$prefix.idx"
done <<<"$STAGED_DATA"
exec {lock}>&-
