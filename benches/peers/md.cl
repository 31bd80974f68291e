// Hand-written kernels for programs/md.pat: a particle for each work-item, as in SHOC, and sixteen for each.
// Positions and forces are separate arrays here, as the program has them; `packed` first brings the positions
// into vectors of four, of which SHOC's kernel reads one for each neighbour.

#ifdef MD_N
// peer: plain for md
// define: MD_N=n
// define: MD_K=k
// launch: md_plain global=n/64*64 local=64 args=pos.0,pos.1,pos.2,nb,cut,lj1,lj2,out.0,out.1,out.2
// peer: plain, groups of 256 for md
// define: MD_N=n
// define: MD_K=k
// launch: md_plain global=n/256*256 local=256 args=pos.0,pos.1,pos.2,nb,cut,lj1,lj2,out.0,out.1,out.2
kernel void md_plain(global const float *restrict px, global const float *restrict py,
                     global const float *restrict pz, global const int *restrict nb, const float cut,
                     const float lj1, const float lj2, global float *restrict fx,
                     global float *restrict fy, global float *restrict fz) {
  int i = get_global_id(0);
  float x = px[i], y = py[i], z = pz[i], ax = 0, ay = 0, az = 0;
  for (int j = 0; j < MD_K; j++) {
    int q = nb[j * MD_N + i];
    float dx = x - px[q], dy = y - py[q], dz = z - pz[q];
    float r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < cut) {
      float i2 = 1.0f / r2, i6 = i2 * i2 * i2, g = i2 * i6 * (lj1 * i6 - lj2);
      ax += dx * g;
      ay += dy * g;
      az += dz * g;
    }
  }
  fx[i] = ax;
  fy[i] = ay;
  fz[i] = az;
}

// peer: float4 positions, packed for md
// define: MD_N=n
// define: MD_K=k
// launch: md_pack global=n/64*64 local=64 args=pos.0,pos.1,pos.2,tmp:f32:n*4
// launch: md_float4 global=n/64*64 local=64 args=tmp:f32:n*4,nb,cut,lj1,lj2,out.0,out.1,out.2
kernel void md_pack(global const float *restrict px, global const float *restrict py,
                    global const float *restrict pz, global float4 *restrict pos) {
  int i = get_global_id(0);
  pos[i] = (float4)(px[i], py[i], pz[i], 0);
}
kernel void md_float4(global const float4 *restrict pos, global const int *restrict nb, const float cut,
                      const float lj1, const float lj2, global float *restrict fx,
                      global float *restrict fy, global float *restrict fz) {
  int i = get_global_id(0);
  float4 p = pos[i], a = 0;
  for (int j = 0; j < MD_K; j++) {
    float4 q = pos[nb[j * MD_N + i]];
    float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
    float r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < cut) {
      float i2 = 1.0f / r2, i6 = i2 * i2 * i2, g = i2 * i6 * (lj1 * i6 - lj2);
      a.x += dx * g;
      a.y += dy * g;
      a.z += dz * g;
    }
  }
  fx[i] = a.x;
  fy[i] = a.y;
  fz[i] = a.z;
}

#define PICK(a, q)                                                                                    \
  (float16)(a[q.s0], a[q.s1], a[q.s2], a[q.s3], a[q.s4], a[q.s5], a[q.s6], a[q.s7], a[q.s8], a[q.s9], \
            a[q.sa], a[q.sb], a[q.sc], a[q.sd], a[q.se], a[q.sf])

// peer: float16 for md
// define: MD_N=n
// define: MD_K=k
// launch: md_vector global=n/16 local=1 args=pos.0,pos.1,pos.2,nb,cut,lj1,lj2,out.0,out.1,out.2
kernel void md_vector(global const float *restrict px, global const float *restrict py,
                      global const float *restrict pz, global const int *restrict nb, const float cut,
                      const float lj1, const float lj2, global float *restrict fx,
                      global float *restrict fy, global float *restrict fz) {
  int i = get_global_id(0);
  float16 x = vload16(i, px), y = vload16(i, py), z = vload16(i, pz), ax = 0, ay = 0, az = 0;
  for (int j = 0; j < MD_K; j++) {
    int16 q = vload16(i, nb + j * MD_N);
    float16 dx = x - PICK(px, q), dy = y - PICK(py, q), dz = z - PICK(pz, q);
    float16 r2 = dx * dx + dy * dy + dz * dz;
    float16 i2 = 1.0f / r2, i6 = i2 * i2 * i2;
    float16 g = select((float16)(0), i2 * i6 * (lj1 * i6 - lj2), r2 < cut);
    ax += dx * g;
    ay += dy * g;
    az += dz * g;
  }
  vstore16(ax, i, fx);
  vstore16(ay, i, fy);
  vstore16(az, i, fz);
}
#endif
