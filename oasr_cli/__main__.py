"""`python -m oasr_cli` is `oasr`."""

from oasr_cli.app import main

if __name__ == "__main__":
    main()
