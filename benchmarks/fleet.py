"""The fleet: `scripts/bench fleet SECTION [words]`; without a section it lists them. A section is a
file `fleet_SECTION.py`.
"""

import argparse
from importlib import import_module
from pathlib import Path


def sections() -> list[str]:
    """Each has a docstring, `add_arguments(parser)` and `run(arguments)`."""
    return sorted(
        path.stem.removeprefix("fleet_") for path in Path(__file__).parent.glob("fleet_*.py")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="measure the fleet")
    words = parser.add_subparsers(dest="section", metavar="SECTION")
    for name in sections():
        module = import_module(f"fleet_{name}")
        section = words.add_parser(name, help=(module.__doc__ or "").splitlines()[0])
        module.add_arguments(section)
        section.set_defaults(run=module.run)
    arguments = parser.parse_args()
    if arguments.section is None:
        parser.print_help()
    else:
        arguments.run(arguments)


if __name__ == "__main__":
    main()
