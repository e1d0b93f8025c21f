"""The rules of this stage; `torchferry.catalogue` finds them."""
