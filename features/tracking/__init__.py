"""What is followed from frame to frame, in compiled loops: the mean of speech, and the noise of each filter."""
