"""Third-party training recipes: their values, scripts and configurations, as far as chartgen can express them.

The recipes are AI-Hypercomputer/gpu-recipes @ 2e1fd5e, folders training and src.
"""
