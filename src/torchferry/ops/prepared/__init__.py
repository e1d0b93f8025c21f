"""Modules, and operators of a captured program, rewritten as what can be translated; `capture/prepare/` chooses among them."""
