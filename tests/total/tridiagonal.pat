-- fuzz: seed=1 n=16 m=20

entry z_tri [n][m] (a: [n][m]f32) (b: [n][m]f32) : [n][m]f32 = map2 (\ra rb -> let f = scanSeq (\acc (x, y) -> x + acc * y) 0 (zip ra rb) in reverse (scanSeq (\acc x -> x - acc * 0.3) 0 (reverse f))) a b
