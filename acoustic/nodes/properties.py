"""Properties of node types: what other packages ask of a node, instead of which type it is.

A type declares its properties in `Node.properties`, and `Node.has` asks for them. A new type that declares them is
treated like those that are there: a sum as a sum in compiled loops, in layers and in fusion.
"""

# What the value is.
PRODUCT = "product"  # A B
ELEMENT_PRODUCT = "element product"  # the products of the elements of two operands
SCALED = "scaled"  # s Y, with a number s
SUM = "sum"  # X + Y
DIFFERENCE = "difference"  # X - Y
NEGATIVE = "negative"  # -X
SIGMOID = "sigmoid"  # of each element, as the following two
TANH = "tanh"
RELU = "relu"
SOFTMAX = "softmax"  # of each column
LOG_SOFTMAX = "logarithm of softmax"
LOG_SUM_GROUPS = "logarithms of sums of groups"  # of rows
DROPOUT = "dropout"  # the operand, but for elements that a training pass sets to zero
NORMALISED = "normalised"  # (X - mean) * invStdDev
MEAN = "mean"  # of the operand over the training set
ERROR_COUNT = "error count"  # the number of wrong frames
CROSS_ENTROPY = "cross-entropy"  # its mean over the frames is the logarithm of a perplexity

# How it is computed.
RISING = "rising"  # an increasing function of each element, so that the largest of some stays the largest
OF_SOFTMAX = "of softmax"  # the softmax of operand 1 is compared with the labels, operand 0
OF_WORD_CLASSES = "of word classes"  # a word's probability is that of its class times that of the word within it
NOISE_CONTRASTIVE = "noise-contrastive"  # words are compared with words drawn as noise
RANDOM = "random"  # the value depends on PassContext: random numbers, training or not

# What the engine must know.
DELAY = "delay"  # may be created before its operand: see `Node.delay`
SOCKET = "socket"  # the operand belongs to another network, with other columns: see PairNetwork
