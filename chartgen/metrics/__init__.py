"""The readout of a run from its logs.

The way of the data: a log in blocks of lines (`lines`), of which few matter (`scan`), each read by a module for its
family (`readers`) into events (`events`), gathered as steps of one run (`log`, `track`). With the facts of the run
(`facts`, `settings`, `jobs`) they become figures (`window`, `figures`, `flops`, `peak`, `timeline`), joined in a
`readout`, which is written in many ways (`text`, `shapes`, `prometheus`, `plot`, `report`) and compared (`compare`,
`published`). `live` says one line on a run that is still going.
"""
