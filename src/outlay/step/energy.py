"""Energy of a run."""

from ..quantities import Count, Energy, Power, Seconds, Share

# A card that trains draws near its limit; what it draws less, and what its host and its NICs draw, is not known.
# Accounts of published runs take all of it: Luccioni et al. 2022, section 4.2; model card of Llama 3.1.
DRAWN: Share = 1.0  # assumed


def run_energy(seconds: Seconds, accelerators: Count, power: Power, drawn: Share, pue: Share) -> Energy:
    """Energy of a run: time x accelerators x specified power x the share of it that is drawn x the site's overhead.

    3.6 MJ are one kWh. The accelerators alone, and with `pue` what the site adds to them.
    """
    return seconds * accelerators * power * drawn * pue
