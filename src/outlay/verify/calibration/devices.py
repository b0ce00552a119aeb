"""The names that drivers give to devices, as `nvidia-smi` and `rocm-smi` print them, and those of the catalogue."""

import re

# Pattern, and name of the catalogue: the first line that fits. Source: the names in public logs of
# nvidia-smi and torch.cuda.get_device_name(); what is not here is measured as a machine of its own, or named by --on.
DEVICES = (
    (r"NVIDIA GH200 .*144GB", "gh200-144"),
    (r"NVIDIA GH200", "gh200-96"),
    (r"NVIDIA GB300", "gb300"),
    (r"NVIDIA GB200", "gb200"),
    (r"B300", "b300"),
    (r"B200", "b200"),
    (r"H200 NVL", "h200-nvl"),
    (r"H200", "h200-sxm"),
    (r"H100 NVL", "h100-nvl"),
    (r"H100 PCIe", "h100-pcie"),
    (r"H100 80GB HBM3", "h100-sxm"),
    (r"H800", "h800-sxm"),
    (r"H20\b", "h20"),
    (r"A100-SXM4-80GB", "a100-sxm-80"),
    (r"A100-SXM4-40GB", "a100-sxm-40"),
    (r"A100 80GB PCIe", "a100-pcie-80"),
    (r"A100-PCIE-40GB", "a100-pcie-40"),
    (r"A800-SXM4-80GB", "a800-sxm-80"),
    (r"V100-SXM2-32GB", "v100-sxm2-32"),
    (r"V100-SXM2-16GB", "v100-sxm2-16"),
    (r"L40S", "l40s"),
    (r"L40\b", "l40"),
    (r"L4\b", "l4"),
    (r"A10G", "a10g"),
    (r"A10\b", "a10"),
    (r"T4\b", "t4"),
    (r"RTX 6000 Ada", "rtx6000ada"),
    (r"RTX 3090(?! Ti)", "rtx3090"),
    (r"RTX 4090(?! [DL])", "rtx4090"),
    (r"RTX 5090(?! [DL])", "rtx5090"),
    (r"MI300X", "mi300x"),
    (r"MI325X", "mi325x"),
    (r"MI355X", "mi355x"),
    (r"MI350X", "mi350x"),
)


def accelerator_of(title: str) -> str:
    """The catalogue's name of a device; an empty text where it has none, as of a slice (MIG) of one."""
    if "MIG" in title:
        return ""
    return next((name for pattern, name in DEVICES if re.search(pattern, title)), "")
