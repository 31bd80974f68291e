-- fuzz: seed=272584192593088 n=0
-- A program without kernels ended the driver of an NVIDIA GPU.
entry random [n] = (replicate (n) 1i32)
