"""`python -m necroscope` is the command line."""

from necroscope.cli.main import main

if __name__ == "__main__":
    main()
