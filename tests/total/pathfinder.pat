-- fuzz: seed=1 r=20 c=50

entry pathfinder [r][c] (w: [r][c]i32) : [c]i32 = loop (d = w[0]) for i < r - 1 do map2 (\win x -> x + min (min win[0] win[1]) win[2]) (slide 3 1 (pad 1 1 clamp d)) w[i+1]
