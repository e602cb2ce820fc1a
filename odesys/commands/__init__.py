"""What the subcommands of the command line do, one a file; `odesys.cli` reads the arguments."""
