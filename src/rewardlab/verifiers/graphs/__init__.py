"""Problems on graphs whose answers are not unique."""
