-- What rewriting makes of a map.
entry scal [n] (alpha: f32) (xs: [n]f32) : [n]f32 =
  map (* alpha) xs

-- expect stats size n=4096
-- | nodes 94
-- | classes 28
-- | iterations 6
-- | stop saturated
-- expect term model=generic-gpu size n=4096
-- | take n
-- | . join
-- | . mapWrg 0 (asScalar . mapLcl 0 (vectorize n.t0.v (\x -> x * alpha)) . asVector n.t0.v)
-- | . split n.t0
-- | . padLast n^
-- | . xs
-- | where n.t0=64 n.t0.v=2
-- expect kernel model=generic-gpu size n=4096
-- | #pragma OPENCL FP_CONTRACT OFF
-- |
-- | kernel __attribute__((reqd_work_group_size(32, 1, 1)))
-- | void scal_0(global const float* restrict xs, global float* restrict out, float alpha) {
-- |     const int g0 = get_group_id(0);
-- |     const int l0 = get_local_id(0);
-- |     ((global float2*)out)[32 * g0 + l0] = ((global const float2*)xs)[32 * g0 + l0] * ((float2)(alpha));
-- | }
-- | // scal_0: [2048, 1, 1] work-items in groups of [32, 1, 1]
-- expect found size n=4096
-- | join . mapWrg 0 (join . mapLcl 0 (mapSeq (\x -> x * alpha)) . split 4) . split 1024 . xs
