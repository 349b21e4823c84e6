"""Put results/ and the captions of the figures, which lessons read, into the wheel."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithData(build_py):
    """Copy results/*.json and captions.toml to tinytx_course/data, where lessons look without a checkout."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "tinytx_course" / "data"
            self.mkpath(str(target / "results"))
            for path in sorted(Path("results").glob("*.json")):
                self.copy_file(str(path), str(target / "results" / path.name))
            self.copy_file("notebooks/captions.toml", str(target / "captions.toml"))


setup(cmdclass={"build_py": BuildWithData})
