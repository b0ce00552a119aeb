"""WHERE a run happens: accelerators, the network between them, and how long a kernel or a collective takes."""
