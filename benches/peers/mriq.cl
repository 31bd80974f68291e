// Hand-written kernels for programs/mriq.pat: a voxel for each work-item, as in Parboil; the same with the samples in
// local memory, 256 at a time; and sixteen voxels for each work-item. They want numbers of voxels that 256
// divides.

#ifdef MRIQ_K
// peer: plain for mriq
// define: MRIQ_K=k
// launch: mriq_plain global=n/64*64 local=64 args=voxels.0,voxels.1,voxels.2,samples.0,samples.1,samples.2,samples.3,out.0,out.1
// peer: plain, groups of 256 for mriq
// define: MRIQ_K=k
// launch: mriq_plain global=n/256*256 local=256 args=voxels.0,voxels.1,voxels.2,samples.0,samples.1,samples.2,samples.3,out.0,out.1
kernel void mriq_plain(global const float *restrict vx, global const float *restrict vy,
                       global const float *restrict vz, global const float *restrict kx,
                       global const float *restrict ky, global const float *restrict kz,
                       global const float *restrict mag, global float *restrict real,
                       global float *restrict imaginary) {
  const int i = get_global_id(0);
  const float x = vx[i], y = vy[i], z = vz[i];
  float re = 0, im = 0;
  for (int j = 0; j < MRIQ_K; ++j) {
    const float a = 2.0f * M_PI_F * (kx[j] * x + ky[j] * y + kz[j] * z);
    re += mag[j] * cos(a);
    im += mag[j] * sin(a);
  }
  real[i] = re;
  imaginary[i] = im;
}

// peer: 256 samples in local memory for mriq
// define: MRIQ_K=k
// launch: mriq_local global=n/256*256 local=256 args=voxels.0,voxels.1,voxels.2,samples.0,samples.1,samples.2,samples.3,out.0,out.1
#define MRIQ_TILE 256
kernel void mriq_local(global const float *restrict vx, global const float *restrict vy,
                       global const float *restrict vz, global const float *restrict kx,
                       global const float *restrict ky, global const float *restrict kz,
                       global const float *restrict mag, global float *restrict real,
                       global float *restrict imaginary) {
  local float4 tile[MRIQ_TILE];
  const int i = get_global_id(0), l = get_local_id(0);
  const float x = vx[i], y = vy[i], z = vz[i];
  float re = 0, im = 0;
  for (int first = 0; first < MRIQ_K; first += MRIQ_TILE) {
    const int mine = first + l;
    if (mine < MRIQ_K)
      tile[l] = (float4)(kx[mine], ky[mine], kz[mine], mag[mine]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int last = min(MRIQ_TILE, MRIQ_K - first);
    for (int j = 0; j < last; ++j) {
      const float4 s = tile[j];
      const float a = 2.0f * M_PI_F * (s.x * x + s.y * y + s.z * z);
      re += s.w * cos(a);
      im += s.w * sin(a);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  real[i] = re;
  imaginary[i] = im;
}

// peer: float16 for mriq
// define: MRIQ_K=k
// launch: mriq_vector global=n/16 local=1 args=voxels.0,voxels.1,voxels.2,samples.0,samples.1,samples.2,samples.3,out.0,out.1
kernel void mriq_vector(global const float *restrict vx, global const float *restrict vy,
                        global const float *restrict vz, global const float *restrict kx,
                        global const float *restrict ky, global const float *restrict kz,
                        global const float *restrict mag, global float *restrict real,
                        global float *restrict imaginary) {
  const int i = get_global_id(0);
  const float16 x = vload16(i, vx), y = vload16(i, vy), z = vload16(i, vz);
  float16 re = 0, im = 0;
  for (int j = 0; j < MRIQ_K; ++j) {
    const float16 a = 2.0f * M_PI_F * (kx[j] * x + ky[j] * y + kz[j] * z);
    re += mag[j] * cos(a);
    im += mag[j] * sin(a);
  }
  vstore16(re, i, real);
  vstore16(im, i, imaginary);
}
#endif
