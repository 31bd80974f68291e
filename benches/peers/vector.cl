// Hand-written kernels for the vector programs, as a user would write them: plain versions and tuned ones.
// `patsat bench --peers benches/peers/vector.cl` times them beside the generated kernels; the comments say how
// each is launched. The tuned versions want sizes that 16 and the number of work-items divide; the rest of
// the array is done by the last work-item.

// ---- scal: y = alpha * x

// peer: scal, plain for scal
// launch: scal_plain global=n/64*64 local=64 args=alpha,xs,out
kernel void scal_plain(const float alpha, global const float *restrict x, global float *restrict y) {
  size_t i = get_global_id(0);
  y[i] = alpha * x[i];
}

// peer: scal, float16 for scal
// define: SCAL_N=n
// launch: scal_vector global=n/1024*64 local=64 args=alpha,xs,out
kernel void scal_vector(const float alpha, global const float16 *restrict x, global float16 *restrict y) {
  size_t i = get_global_id(0);
  y[i] = alpha * x[i];
}

// peer: scal, float16 in chunks for scal
// define: SCAL_N=n
// launch: scal_chunk global=units*16 local=1 args=alpha,xs,out
#ifdef SCAL_N
kernel void scal_chunk(const float alpha, global const float16 *restrict x, global float16 *restrict y) {
  const size_t all = SCAL_N / 16, chunk = all / get_global_size(0);
  const size_t first = get_global_id(0) * chunk;
  const size_t last = get_global_id(0) + 1 == get_global_size(0) ? all : first + chunk;
  for (size_t i = first; i < last; ++i)
    y[i] = alpha * x[i];
  if (get_global_id(0) == 0)
    for (size_t i = all * 16; i < SCAL_N; ++i)
      ((global float *)y)[i] = alpha * ((global const float *)x)[i];
}
#endif

// ---- asum: the sum of absolute values, in two stages

// peer: asum, tree in local memory for asum
// define: ASUM_N=n
// define: ASUM_PARTS=units*8
// launch: asum_tree global=units*2048 local=256 args=xs,tmp:f32:units*8
// launch: asum_final global=1 local=1 args=tmp:f32:units*8,out
#ifdef ASUM_N
kernel void asum_tree(global const float *restrict x, global float *restrict part) {
  local float s[256];
  float a = 0;
  for (size_t i = get_global_id(0); i < ASUM_N; i += get_global_size(0))
    a += fabs(x[i]);
  s[get_local_id(0)] = a;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 128; k > 0; k /= 2) {
    if (get_local_id(0) < k)
      s[get_local_id(0)] += s[get_local_id(0) + k];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (get_local_id(0) == 0)
    part[get_group_id(0)] = s[0];
}
kernel void asum_final(global const float *restrict part, global float *restrict out) {
  float a = 0;
  for (int i = 0; i < ASUM_PARTS; ++i)
    a += part[i];
  out[0] = a;
}

// peer: asum, float16 in chunks for asum
// define: ASUM_N=n
// define: ASUM_PARTS=units*4
// launch: asum_chunk global=units*4 local=1 args=xs,tmp:f32:units*4
// launch: asum_final global=1 local=1 args=tmp:f32:units*4,out
kernel void asum_chunk(global const float16 *restrict x, global float *restrict part) {
  const size_t all = ASUM_N / 64 * 4, chunk = all / 4 / get_global_size(0) * 4;
  const size_t first = get_global_id(0) * chunk;
  const size_t last = get_global_id(0) + 1 == get_global_size(0) ? all : first + chunk;
  float16 a = 0, b = 0, c = 0, d = 0;
  for (size_t i = first; i < last; i += 4) {
    a += fabs(x[i]);
    b += fabs(x[i + 1]);
    c += fabs(x[i + 2]);
    d += fabs(x[i + 3]);
  }
  a += b + c + d;
  float8 e = a.lo + a.hi;
  float4 f = e.lo + e.hi;
  float s = f.x + f.y + f.z + f.w;
  if (get_global_id(0) == 0)
    for (size_t i = all * 16; i < ASUM_N; ++i)
      s += fabs(((global const float *)x)[i]);
  part[get_global_id(0)] = s;
}
#endif

// ---- dot: the inner product, in two stages

// peer: dot, tree in local memory for dot
// define: DOT_N=n
// define: DOT_PARTS=units*8
// launch: dot_tree global=units*2048 local=256 args=xs,ys,tmp:f32:units*8
// launch: dot_final global=1 local=1 args=tmp:f32:units*8,out
#ifdef DOT_N
kernel void dot_tree(global const float *restrict x, global const float *restrict y,
                     global float *restrict part) {
  local float s[256];
  float a = 0;
  for (size_t i = get_global_id(0); i < DOT_N; i += get_global_size(0))
    a += x[i] * y[i];
  s[get_local_id(0)] = a;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 128; k > 0; k /= 2) {
    if (get_local_id(0) < k)
      s[get_local_id(0)] += s[get_local_id(0) + k];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (get_local_id(0) == 0)
    part[get_group_id(0)] = s[0];
}
kernel void dot_final(global const float *restrict part, global float *restrict out) {
  float a = 0;
  for (int i = 0; i < DOT_PARTS; ++i)
    a += part[i];
  out[0] = a;
}

// peer: dot, float16 in chunks for dot
// define: DOT_N=n
// define: DOT_PARTS=units*4
// launch: dot_chunk global=units*4 local=1 args=xs,ys,tmp:f32:units*4
// launch: dot_final global=1 local=1 args=tmp:f32:units*4,out
kernel void dot_chunk(global const float16 *restrict x, global const float16 *restrict y,
                      global float *restrict part) {
  const size_t all = DOT_N / 64 * 4, chunk = all / 4 / get_global_size(0) * 4;
  const size_t first = get_global_id(0) * chunk;
  const size_t last = get_global_id(0) + 1 == get_global_size(0) ? all : first + chunk;
  float16 a = 0, b = 0, c = 0, d = 0;
  for (size_t i = first; i < last; i += 4) {
    a += x[i] * y[i];
    b += x[i + 1] * y[i + 1];
    c += x[i + 2] * y[i + 2];
    d += x[i + 3] * y[i + 3];
  }
  a += b + c + d;
  float8 e = a.lo + a.hi;
  float4 f = e.lo + e.hi;
  float s = f.x + f.y + f.z + f.w;
  if (get_global_id(0) == 0)
    for (size_t i = all * 16; i < DOT_N; ++i)
      s += ((global const float *)x)[i] * ((global const float *)y)[i];
  part[get_global_id(0)] = s;
}
#endif

// ---- gemv: y = alpha * A * x + beta * y, A row-major

// peer: gemv, a row for each work-item for gemv
// define: GEMV_N=n
// define: GEMV_M=m
// launch: gemv_plain global=n local=1 args=A,x,y,alpha,beta,out
#ifdef GEMV_M
kernel void gemv_plain(global const float *restrict A, global const float *restrict x,
                       global const float *restrict y, const float alpha, const float beta,
                       global float *restrict out) {
  const size_t i = get_global_id(0);
  float a = 0;
  for (size_t j = 0; j < GEMV_M; ++j)
    a += A[i * GEMV_M + j] * x[j];
  out[i] = alpha * a + beta * y[i];
}

// peer: gemv, float16 along rows for gemv
// define: GEMV_N=n
// define: GEMV_M=m
// launch: gemv_vector global=units*8 local=1 args=A,x,y,alpha,beta,out
kernel void gemv_vector(global const float16 *restrict A, global const float16 *restrict x,
                        global const float *restrict y, const float alpha, const float beta,
                        global float *restrict out) {
  const size_t chunk = (GEMV_N + get_global_size(0) - 1) / get_global_size(0);
  const size_t first = get_global_id(0) * chunk, last = min(first + chunk, (size_t)GEMV_N);
  for (size_t i = first; i < last; ++i) {
    global const float16 *row = A + i * (GEMV_M / 16);
    float16 a = 0, b = 0, c = 0, d = 0;
    for (size_t j = 0; j + 4 <= GEMV_M / 16; j += 4) {
      a += row[j] * x[j];
      b += row[j + 1] * x[j + 1];
      c += row[j + 2] * x[j + 2];
      d += row[j + 3] * x[j + 3];
    }
    a += b + c + d;
    float8 e = a.lo + a.hi;
    float4 f = e.lo + e.hi;
    out[i] = alpha * (f.x + f.y + f.z + f.w) + beta * y[i];
  }
}
#endif
