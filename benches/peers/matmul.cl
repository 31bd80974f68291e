// Hand-written kernels for programs/matmul.pat: an element for each work-item; the same with square tiles of both
// matrices in local memory; and blocks of 8 by 32 elements in the registers of a work-item, as a CPU wants them.
// They want sizes that their tiles divide.

#ifdef MM_M
// peer: plain for matmul
// define: MM_M=m
// define: MM_K=k
// launch: matmul_plain global=m/16*16,n/16*16 local=16,16 args=A,B,out
kernel void matmul_plain(global const float *restrict A, global const float *restrict B,
                         global float *restrict C) {
  const int col = get_global_id(0), row = get_global_id(1);
  float sum = 0;
  for (int k = 0; k < MM_K; ++k)
    sum += A[row * MM_K + k] * B[k * MM_M + col];
  C[row * MM_M + col] = sum;
}

// peer: tiles of 16 by 16 in local memory for matmul
// define: MM_M=m
// define: MM_K=k
// launch: matmul_local global=m/16*16,n/16*16 local=16,16 args=A,B,out
#define MM_TILE 16
kernel void matmul_local(global const float *restrict A, global const float *restrict B,
                         global float *restrict C) {
  local float a[MM_TILE][MM_TILE], b[MM_TILE][MM_TILE];
  const int x = get_local_id(0), y = get_local_id(1);
  const int col = get_global_id(0), row = get_global_id(1);
  float sum = 0;
  for (int first = 0; first < MM_K; first += MM_TILE) {
    a[y][x] = A[row * MM_K + first + x];
    b[y][x] = B[(first + y) * MM_M + col];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < MM_TILE; ++k)
      sum += a[y][k] * b[k][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  C[row * MM_M + col] = sum;
}

// peer: 8 by 32 in registers, float16 for matmul
// define: MM_M=m
// define: MM_K=k
// launch: matmul_registers global=m/32,n/8 local=1,1 args=A,B,out
#define MM_ROWS 8
kernel void matmul_registers(global const float *restrict A, global const float *restrict B,
                             global float *restrict C) {
  const int col = 32 * get_global_id(0), row = MM_ROWS * get_global_id(1);
  float16 left[MM_ROWS], right[MM_ROWS];
#pragma unroll
  for (int r = 0; r < MM_ROWS; ++r)
    left[r] = right[r] = 0;
  for (int k = 0; k < MM_K; ++k) {
    const float16 b0 = vload16(0, B + k * MM_M + col), b1 = vload16(1, B + k * MM_M + col);
#pragma unroll
    for (int r = 0; r < MM_ROWS; ++r) {
      const float16 a = A[(row + r) * MM_K + k];
      left[r] = fma(a, b0, left[r]);
      right[r] = fma(a, b1, right[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < MM_ROWS; ++r) {
    vstore16(left[r], 0, C + (row + r) * MM_M + col);
    vstore16(right[r], 1, C + (row + r) * MM_M + col);
  }
}
#endif
