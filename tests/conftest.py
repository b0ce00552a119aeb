"""What every test shares: one profile of hypothesis, without a deadline and with the same examples in every run."""

from hypothesis import settings

settings.register_profile("outlay", deadline=None, derandomize=True)
settings.load_profile("outlay")
