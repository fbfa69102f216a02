"""Natural gradient compared with plain SGD, with 1 to 16 jobs: the comparison of Povey, Zhang and Khudanpur (2015)."""
