// Hand-written kernels for programs/nbody.pat: a body for each work-item; the same with the bodies that pull in
// local memory, 256 at a time; and sixteen bodies for each work-item, as a CPU wants them (of sizes that 16
// divides). The components of bodies are separate arrays, as the program has them.

#ifdef NBODY_N
// What a body of mass m, (dx, dy, dz) away, adds to (ax, ay, az).
#define PULL(ax, ay, az, dx, dy, dz, m)                        \
  {                                                            \
    const AXIS r = rsqrt(dx * dx + dy * dy + dz * dz + eps);   \
    const AXIS w = m * r * r * r;                              \
    ax += dx * w;                                              \
    ay += dy * w;                                              \
    az += dz * w;                                              \
  }

#define AXIS float
// peer: plain for nbody
// define: NBODY_N=n
// launch: nbody_plain global=n local=64 args=bodies.0,bodies.1,bodies.2,bodies.3,eps,out.0,out.1,out.2
// peer: plain, groups of 256 for nbody
// define: NBODY_N=n
// launch: nbody_plain global=n local=256 args=bodies.0,bodies.1,bodies.2,bodies.3,eps,out.0,out.1,out.2
kernel void nbody_plain(global const float *restrict px, global const float *restrict py,
                        global const float *restrict pz, global const float *restrict mass,
                        const float eps, global float *restrict fx, global float *restrict fy,
                        global float *restrict fz) {
  const int i = get_global_id(0);
  if (i >= NBODY_N)
    return;
  const float x = px[i], y = py[i], z = pz[i];
  float ax = 0, ay = 0, az = 0;
  for (int j = 0; j < NBODY_N; ++j) {
    const float dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
    PULL(ax, ay, az, dx, dy, dz, mass[j])
  }
  fx[i] = ax;
  fy[i] = ay;
  fz[i] = az;
}

// peer: 256 bodies in local memory for nbody
// define: NBODY_N=n
// launch: nbody_local global=n local=256 args=bodies.0,bodies.1,bodies.2,bodies.3,eps,out.0,out.1,out.2
#define NBODY_TILE 256
kernel void nbody_local(global const float *restrict px, global const float *restrict py,
                        global const float *restrict pz, global const float *restrict mass,
                        const float eps, global float *restrict fx, global float *restrict fy,
                        global float *restrict fz) {
  local float4 tile[NBODY_TILE];
  const int i = get_global_id(0), l = get_local_id(0);
  const int own = min(i, NBODY_N - 1);
  const float x = px[own], y = py[own], z = pz[own];
  float ax = 0, ay = 0, az = 0;
  for (int first = 0; first < NBODY_N; first += NBODY_TILE) {
    // A body past the end has no mass.
    const int mine = min(first + l, NBODY_N - 1);
    tile[l] = (float4)(px[mine], py[mine], pz[mine], first + l < NBODY_N ? mass[mine] : 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < NBODY_TILE; ++j) {
      const float4 q = tile[j];
      const float dx = q.x - x, dy = q.y - y, dz = q.z - z;
      PULL(ax, ay, az, dx, dy, dz, q.w)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i >= NBODY_N)
    return;
  fx[i] = ax;
  fy[i] = ay;
  fz[i] = az;
}
#undef AXIS

#define AXIS float16
// peer: float16 for nbody
// define: NBODY_N=n
// launch: nbody_vector global=n/16 local=1 args=bodies.0,bodies.1,bodies.2,bodies.3,eps,out.0,out.1,out.2
kernel void nbody_vector(global const float *restrict px, global const float *restrict py,
                         global const float *restrict pz, global const float *restrict mass,
                         const float eps, global float *restrict fx, global float *restrict fy,
                         global float *restrict fz) {
  const int i = get_global_id(0);
  const float16 x = vload16(i, px), y = vload16(i, py), z = vload16(i, pz);
  float16 ax = 0, ay = 0, az = 0;
  for (int j = 0; j < NBODY_N; ++j) {
    const float16 dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
    PULL(ax, ay, az, dx, dy, dz, mass[j])
  }
  vstore16(ax, i, fx);
  vstore16(ay, i, fy);
  vstore16(az, i, fz);
}
#undef AXIS
#endif
