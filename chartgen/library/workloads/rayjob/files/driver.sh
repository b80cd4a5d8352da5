# Ray starts this on the head, which knows the program and its arguments.
mapfile -d '' -t arguments </run/chartgen/arguments
set -- "${arguments[@]}"
