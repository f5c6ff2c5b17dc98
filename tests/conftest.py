"""Settings of all tests."""

import os

from hypothesis import settings

settings.register_profile("privbench", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("privbench")
