"""What everything else is compared with."""
