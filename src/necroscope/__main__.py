"""`python -m necroscope` is the command line."""

from necroscope.cli.main import run

if __name__ == "__main__":
    run()
