-- fuzz: seed=1 n=101 m=20
def gelu (x: f32) : f32 = 0.5 * x * (1 + erf (x / sqrt 2))
def smooth (x: f32) : f32 = 0.5 * x * (1 + tanh (sqrt (2 / f32.pi) * (x + 0.044715 * x ** 3)))

entry activations [n][m] (xss: [n][m]f32) : ([n][m]f32, [n][m]f32, [n]f32) =
  (map (map gelu) xss, map (map smooth) xss, map (\xs -> reduce (+) 0 (map (\x -> log1p (exp (-abs x)) + max x 0) xs)) xss)
