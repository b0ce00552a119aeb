"""How far apart two colours look: CAM02-UCS, contrast as WCAG counts it, and four other ways of seeing.

CIECAM02 under the viewing conditions of sRGB (a D65 screen, 64 lux around it, Y_b 20), and its uniform space by Luo,
Cui and Li 2006. Colour blindness by Machado, Oliveira and Fernandes 2009 at full severity, on linear RGB.
"""

from math import atan2, cos, exp, hypot, log, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
CAT02 = np.array([[0.7328, 0.4296, -0.1624], [-0.7036, 1.6975, 0.0061], [0.0030, 0.0136, 0.9834]])
HPE = np.array([[0.38971, 0.68898, -0.07868], [-0.22981, 1.18340, 0.04641], [0.0, 0.0, 1.0]])
WHITE = np.array([95.047, 100.0, 108.883])

SIGHTS = {
    "normal": np.eye(3),
    "protanopic": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopic": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopic": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
    "grey": np.tile(TO_XYZ[1], (3, 1)),
}


def linear(colour: str) -> Vector:
    """A colour such as #256B9F or #FFF in linear RGB, 0..1."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    coded = np.array([int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)])
    return np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21. Source: WCAG 2, relative luminance."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def distance(one: str, other: str, sight: str = "normal") -> float:
    """The distance of two colours in CAM02-UCS as this sight sees them; about 1 is just noticeable."""
    seen = [uniform(np.clip(SIGHTS[sight] @ linear(colour), 0, 1)) for colour in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def _adapted(rgb: Vector, level: float) -> Vector:
    power = (level * np.abs(rgb) / 100) ** 0.42
    return np.sign(rgb) * 400 * power / (power + 27.13) + 0.1


def uniform(rgb: Vector) -> Vector:
    """Linear RGB to J', a', b' of CAM02-UCS."""
    adapting, background = 64 / pi / 5, 20.0
    k = 1 / (5 * adapting + 1)
    level = 0.2 * k**4 * 5 * adapting + 0.1 * (1 - k**4) ** 2 * (5 * adapting) ** (1 / 3)
    n = background / WHITE[1]
    nbb, z = 0.725 * n**-0.2, 1.48 + sqrt(n)
    degree = 1 - exp((-adapting - 42) / 92) / 3.6
    white = CAT02 @ WHITE
    gain = WHITE[1] * degree / white + 1 - degree
    back = HPE @ np.linalg.inv(CAT02)
    here = _adapted(back @ (gain * (CAT02 @ (100 * TO_XYZ @ rgb))), level)
    there = _adapted(back @ (gain * white), level)
    return _coordinates(here, there, nbb, z, n, level)


def _coordinates(here: Vector, there: Vector, nbb: float, z: float, n: float, level: float) -> Vector:
    """Lightness, colourfulness and hue of an adapted response, bent into the uniform space."""
    r, g, b = map(float, here)
    red, yellow = r - 12 * g / 11 + b / 11, (r + g - 2 * b) / 9
    hue = atan2(yellow, red)
    strength = np.array([2, 1, 1 / 20])
    light = 100 * ((strength @ here - 0.305) / (strength @ there - 0.305)) ** (0.69 * z)
    eccentric = (cos(hue + 2) + 3.8) / 4
    t = 50000 / 13 * nbb * eccentric * hypot(red, yellow) / (r + g + 21 / 20 * b)
    colourful = t**0.9 * sqrt(light / 100) * (1.64 - 0.29**n) ** 0.73 * level**0.25
    bent = log(1 + 0.0228 * colourful) / 0.0228
    return np.array([1.7 * light / (1 + 0.007 * light), bent * cos(hue), bent * sin(hue)])
