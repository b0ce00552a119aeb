"""Predicted beside measured: published choices, hold-outs, pictures and schemas."""
