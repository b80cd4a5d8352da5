"""Output of figures for people and programs: text, JSON, pictures, pages, comparisons."""
