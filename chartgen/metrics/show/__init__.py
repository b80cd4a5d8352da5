"""Figures to what people and programs read: text, JSON, pictures, pages, comparisons."""
