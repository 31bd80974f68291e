-- What rewriting makes of a map.
entry scal [n] (alpha: f32) (xs: [n]f32) : [n]f32 =
  map (* alpha) xs

-- expect stats size n=4096
-- | nodes 94
-- | classes 28
-- | iterations 6
-- | stop saturated
-- expect term model=generic-gpu size n=4096
-- | take n . join . mapWrg 0 (mapLcl 0 (\x -> x * alpha)) . split n.t0 . padLast n^ . xs
-- | where n.t0=128
-- expect kernel model=generic-gpu size n=4096
-- | kernel __attribute__((reqd_work_group_size(128, 1, 1)))
-- | void scal_0(global const float* restrict xs, global float* restrict out, float alpha) {
-- |     const int g0 = get_group_id(0);
-- |     const int l0 = get_local_id(0);
-- |     out[128 * g0 + l0] = xs[128 * g0 + l0] * alpha;
-- | }
-- | // scal_0: [4096, 1, 1] work-items in groups of [128, 1, 1]
-- expect found size n=4096
-- | join . mapWrg 0 (join . mapLcl 0 (mapSeq (\x -> x * alpha)) . split 4) . split 1024 . xs
