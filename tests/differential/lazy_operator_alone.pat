-- fuzz: seed=36 m=3
-- E0999: the second operand of a lazy operator was no scalar expression, and the operator the whole body.
entry random [m] = true || reduce (&&) true (replicate m true)
