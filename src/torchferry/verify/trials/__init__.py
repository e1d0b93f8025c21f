"""Which calls are tried: sizes and values chosen for what they can expose, and how many of them."""
