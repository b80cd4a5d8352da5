"""`python -m chartgen`: the command line."""

from chartgen.cli import main

main(prog_name="chartgen")
