"""Whole numbers that a degree may be."""


def divisors(number: int, most: int = 10**9) -> tuple[int, ...]:
    """The whole numbers that divide another, in order, up to a limit."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(d for d in sorted({*small, *(number // d for d in small)}) if d <= most)


def powers(most: float) -> tuple[int, ...]:
    """Powers of two up to a number."""
    return tuple(2**power for power in range(int(most).bit_length()) if 2**power <= most)
