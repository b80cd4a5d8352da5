"""The readout of a run from its logs.

The data flow: `read` splits logs into blocks of lines (`lines`), finds the few relevant lines (`scan`), parses them
with one module per family (`readers`) into events (`events`), and collects these as the steps of one run (`log`,
`track`). `figures` combines them with the facts of the run (`facts`, `jobs`) and computes figures (`window`, `summary`,
`timeline`). `report_data` joins these in a readout. `show` writes it in several forms (`text`, `export`, `svg`,
`html`) and compares it (`compare`). `live` prints one line on an active run.
"""
