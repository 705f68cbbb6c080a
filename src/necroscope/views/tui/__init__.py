"""The live terminal view: `top_model` thinks, `overview`, `core_page` and `help_page` draw lines,
`top_app` shows them.
"""
