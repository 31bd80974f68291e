-- Sliding windows: a work-item computes several neighbouring results in one loop, and loads once what their windows
-- have in common.

-- A filter of a long signal.
entry fir [n] [k] (xs: [n + k - 1]f32) (h: [k]f32) : [n]f32 =
  slide k 1 xs |> map (\w -> reduce (+) 0 (map2 (*) w h))

-- expect term entry=fir model=nvidia-h200 float=relaxed size n=16777216 k=64
-- | take n
-- | . join
-- | . mapGlb 0 (mapUnroll (reduceSeq ((+) . bimap id (*)) 0.0 . zip . fork id h))
-- | . split n.t0
-- | . padLast n^
-- | . slide k 1 n
-- | . xs
-- | where n.t0=4

-- Four results in one loop, whose steps are written out.
entry four [n] [k] (xs: [4*n + k - 1]f32) (h: [k]f32) : [4*n]f32 =
  slide k 1 xs |> split 4 |> mapGlb 0 (mapUnroll (\w -> reduceSeq (\a (x, y) -> a + x * y) 0 (zip w h))) |> join

-- expect kernel entry=four no-rewrite model=nvidia-h200 size n=1024 k=7
-- | kernel __attribute__((reqd_work_group_size(2, 1, 1)))
-- | void four_0(global const float* restrict h, global const float* restrict xs, global float* restrict out) {
-- |     const int i0 = get_global_id(0);
-- |     float t6 = 0.0f;
-- |     float t8 = 0.0f;
-- |     float t10 = 0.0f;
-- |     float t12 = 0.0f;
-- |     const float4 t13 = ((global const float4*)xs)[i0];
-- |     const float4 t16 = ((global const float4*)h)[0];
-- |     t6 = t6 + t13.s0 * t16.s0;
-- |     t8 = t8 + t13.s1 * t16.s0;
-- |     t10 = t10 + t13.s2 * t16.s0;
-- |     t12 = t12 + t13.s3 * t16.s0;
-- |     t6 = t6 + t13.s1 * t16.s1;
-- |     t8 = t8 + t13.s2 * t16.s1;
-- |     t10 = t10 + t13.s3 * t16.s1;
-- |     const float4 t14 = ((global const float4*)xs)[i0 + 1];
-- |     t12 = t12 + t14.s0 * t16.s1;
-- |     t6 = t6 + t13.s2 * t16.s2;
-- |     t8 = t8 + t13.s3 * t16.s2;
-- |     t10 = t10 + t14.s0 * t16.s2;
-- |     t12 = t12 + t14.s1 * t16.s2;
-- |     t6 = t6 + t13.s3 * t16.s3;
-- |     t8 = t8 + t14.s0 * t16.s3;
-- |     t10 = t10 + t14.s1 * t16.s3;
-- |     t12 = t12 + t14.s2 * t16.s3;
-- |     const float2 t17 = ((global const float2*)h)[2];
-- |     t6 = t6 + t14.s0 * t17.s0;
-- |     t8 = t8 + t14.s1 * t17.s0;
-- |     t10 = t10 + t14.s2 * t17.s0;
-- |     t12 = t12 + t14.s3 * t17.s0;
-- |     t6 = t6 + t14.s1 * t17.s1;
-- |     t8 = t8 + t14.s2 * t17.s1;
-- |     t10 = t10 + t14.s3 * t17.s1;
-- |     const float2 t15 = ((global const float2*)xs)[2 * i0 + 4];
-- |     t12 = t12 + t15.s0 * t17.s1;
-- |     const float t18 = h[6];
-- |     t6 = t6 + t14.s2 * t18;
-- |     t8 = t8 + t14.s3 * t18;
-- |     t10 = t10 + t15.s0 * t18;
-- |     t12 = t12 + t15.s1 * t18;
-- |     ((global float4*)out)[i0] = ((float4)(t6, t8, t10, t12));
-- | }
-- | // four_0: [1024, 1, 1] work-items in groups of [2, 1, 1]
