-- A program that says itself how it runs.
entry low [n] (xs: [n]f32) : [n / 128]f32 =
  xs
    |> split 128
    |> mapWrg 0 (\chunk ->
      chunk
        |> split 2
        |> toLocal (mapLcl 0 (reduceSeq (\acc x -> acc + abs x) 0))
        |> reduceSeq (+) 0)

-- expect term no-rewrite size n=1024
-- | mapWrg 0 (reduceSeq (+) 0.0 . toLocal (mapLcl 0 (reduceSeq (\(a, b) -> a + abs b) 0.0)) . split 2)
-- | . split 128
-- | . xs
-- expect kernel no-rewrite model=generic-gpu size n=1024
-- | kernel __attribute__((reqd_work_group_size(64, 1, 1)))
-- | void low_0(global const float* restrict xs, global float* restrict out) {
-- |     local float tile6[64] __attribute__((aligned(64)));
-- |     const int g0 = get_group_id(0);
-- |     const int l0 = get_local_id(0);
-- |     float t7 = 0.0f;
-- |     const float2 t13 = ((global const float2*)xs)[64 * g0 + l0];
-- |     const float t11 = t13.s0;
-- |     const float t12 = t13.s1;
-- |     t7 = t7 + fabs(t11);
-- |     t7 = t7 + fabs(t12);
-- |     tile6[l0] = t7;
-- |     barrier(CLK_LOCAL_MEM_FENCE);
-- |     if (l0 == 0) {
-- |         float t9 = 0.0f;
-- |         #pragma unroll 16
-- |         for (int i10 = 0; i10 < 64; ++i10) {
-- |             t9 = t9 + tile6[i10];
-- |         }
-- |         out[g0] = t9;
-- |     }
-- | }
-- | // low_0: [512, 1, 1] work-items in groups of [64, 1, 1]
-- expect error E0303 size n=1000
