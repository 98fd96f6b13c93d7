"""`python -m coordbench`."""

from coordbench.cli import main

if __name__ == "__main__":
    main()
