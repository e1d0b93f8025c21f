"""Whether products of 8-bit integers come out right on this processor, asked by products that 16 bits cannot hold.

Without VNNI (or AMX, or ARM's dot products) kernels that multiply uint8 by int8 add pairs of products in 16 bits, and cut the sum
off there: 255 * 127 twice is 64770, and comes out as 32767. Nobody says so, and which kernel does it hangs on the runtime, its
version and the processor; so each is asked, once in a process, when a file is opened that needs it. No table decides.

product    a kind of product, the numbers that it is asked with, and what they come to
asked      what onnxruntime answers here
elsewhere  what a processor without VNNI answers, by a model of it
"""
