"""Why a file is wrong: from the failing trial to the line, the cause and the smallest file that shows it."""
