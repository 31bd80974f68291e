-- fuzz: seed=1 n=29 m=17

-- Definitions that are called several times with the same arguments.
def mean [n] (xs: [n]f32) : f32 = sum xs / f32.i32 n

def var [n] (xs: [n]f32) : f32 = mean (map (\x -> (x - mean xs) * (x - mean xs)) xs)

def last [n] (xs: [n]f32) : f32 = loop a = 0 for x in xs do 0.5 * a + x

entry scores [n][m] (xss: [n][m]f32) (bs: [n]bool) : [n][m]f32 =
  map2
    (\xs b ->
      map
        (\x ->
          (x - mean xs) / sqrt (var xs + 1) + (if b then last xs else last xs * last (reverse xs)))
        xs)
    xss
    bs
