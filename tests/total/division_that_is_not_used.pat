-- fuzz: seed=276190882744848 n=1 m=0
entry division_that_is_not_used [n] [m] = (replicate n n)[(loop _ = 3 for i < m do i / i) % n]
