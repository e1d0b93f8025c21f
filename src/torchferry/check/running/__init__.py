"""Running a file: feeds made to fit, failures traced to the node and to their cause."""
