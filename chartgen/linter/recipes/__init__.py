"""Training recipes of others: what their values, scripts and configurations say, as far as chartgen has words for it.

The recipes are AI-Hypercomputer/gpu-recipes @ 2e1fd5e, folders training and src.
"""
