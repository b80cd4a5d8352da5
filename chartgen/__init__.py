"""chartgen composes, checks and runs Helm charts for NeMo and Megatron training on GPU machines of several clouds."""

__version__ = "0.1.0"
