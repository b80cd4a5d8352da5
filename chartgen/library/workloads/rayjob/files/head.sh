# The program and its arguments, for the driver: Ray starts that here, without arguments.
mkdir -p /run/chartgen
printf '%s\0' "$@" >/run/chartgen/arguments
