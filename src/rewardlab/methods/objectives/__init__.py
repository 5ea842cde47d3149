"""What is optimised: losses that change how credit becomes an update."""
