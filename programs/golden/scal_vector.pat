-- Equation 5.15 of Steuwer's thesis, figure 3 of the ICFP 2015 paper: vectorised scaling with chunks
-- of n1 = 1024 and vectors of n2 = 4. The factor is a parameter; the paper multiplies by 3.
entry scal [n] (alpha: f32) (xs: [n]f32) : [n]f32 =
  xs
    |> split 1024
    |> mapWrg 0 (asVector 4 >-> mapLcl 0 (vectorize 4 (* alpha)) >-> asScalar)
    |> join
