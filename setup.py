"""Put what lessons read outside the packages into the wheel; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithFiles(build_py):
    """Copy files to tinytx_course/data, where `course_file` and `read_results` look without a checkout."""

    PATTERNS = ("results/*.json", "notebooks/gpt_*.py", "LICENSE")

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            data = Path(self.build_lib) / "tinytx_course" / "data"
            for path in sorted(path for pattern in self.PATTERNS for path in Path().glob(pattern)):
                self.mkpath(str((data / path).parent))
                self.copy_file(str(path), str(data / path))


setup(cmdclass={"build_py": BuildWithFiles})
