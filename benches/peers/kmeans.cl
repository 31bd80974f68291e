// Hand-written kernels for programs/kmeans.pat: a point for each work-item; the same with all centroids in local
// memory; and after the points have been transposed, so that neighbouring work-items, or the lanes of a
// vector, read neighbouring numbers (the last of numbers of points that 16 divides).

#ifdef KM_D
// peer: plain for kmeans
// define: KM_N=n
// define: KM_K=k
// define: KM_D=d
// launch: kmeans_plain global=n local=64 args=points,centroids,out
kernel void kmeans_plain(global const float *restrict points, global const float *restrict centroids,
                         global int *restrict out) {
  const int i = get_global_id(0);
  if (i >= KM_N)
    return;
  float least = INFINITY;
  int nearest = 0;
  for (int c = 0; c < KM_K; ++c) {
    float sum = 0;
    for (int j = 0; j < KM_D; ++j) {
      const float e = points[i * KM_D + j] - centroids[c * KM_D + j];
      sum += e * e;
    }
    if (sum < least) {
      least = sum;
      nearest = c;
    }
  }
  out[i] = nearest;
}

// peer: centroids in local memory for kmeans
// define: KM_N=n
// define: KM_K=k
// define: KM_D=d
// launch: kmeans_local global=n local=64 args=points,centroids,out
kernel void kmeans_local(global const float *restrict points, global const float *restrict centroids,
                         global int *restrict out) {
  local float all[KM_K * KM_D];
  for (int j = get_local_id(0); j < KM_K * KM_D; j += get_local_size(0))
    all[j] = centroids[j];
  barrier(CLK_LOCAL_MEM_FENCE);
  const int i = get_global_id(0);
  if (i >= KM_N)
    return;
  float least = INFINITY;
  int nearest = 0;
  for (int c = 0; c < KM_K; ++c) {
    float sum = 0;
    for (int j = 0; j < KM_D; ++j) {
      const float e = points[i * KM_D + j] - all[c * KM_D + j];
      sum += e * e;
    }
    if (sum < least) {
      least = sum;
      nearest = c;
    }
  }
  out[i] = nearest;
}

kernel void kmeans_transpose(global const float *restrict points, global float *restrict features) {
  const int i = get_global_id(0);
  if (i >= KM_N)
    return;
  for (int j = 0; j < KM_D; ++j)
    features[j * KM_N + i] = points[i * KM_D + j];
}

// peer: transposed first for kmeans
// define: KM_N=n
// define: KM_K=k
// define: KM_D=d
// launch: kmeans_transpose global=n local=64 args=points,tmp:f32:n*d
// launch: kmeans_features global=n local=64 args=tmp:f32:n*d,centroids,out
kernel void kmeans_features(global const float *restrict features, global const float *restrict centroids,
                            global int *restrict out) {
  const int i = get_global_id(0);
  if (i >= KM_N)
    return;
  float least = INFINITY;
  int nearest = 0;
  for (int c = 0; c < KM_K; ++c) {
    float sum = 0;
    for (int j = 0; j < KM_D; ++j) {
      const float e = features[j * KM_N + i] - centroids[c * KM_D + j];
      sum += e * e;
    }
    if (sum < least) {
      least = sum;
      nearest = c;
    }
  }
  out[i] = nearest;
}

// peer: transposed first, float16 for kmeans
// define: KM_N=n
// define: KM_K=k
// define: KM_D=d
// launch: kmeans_transpose global=n local=64 args=points,tmp:f32:n*d
// launch: kmeans_vector global=n/16 local=1 args=tmp:f32:n*d,centroids,out
kernel void kmeans_vector(global const float *restrict features, global const float *restrict centroids,
                          global int *restrict out) {
  const int i = get_global_id(0);
  float16 least = INFINITY;
  int16 nearest = 0;
  for (int c = 0; c < KM_K; ++c) {
    float16 sum = 0;
    for (int j = 0; j < KM_D; ++j) {
      const float16 e = vload16(i, features + j * KM_N) - centroids[c * KM_D + j];
      sum += e * e;
    }
    const int16 closer = sum < least;
    least = select(least, sum, closer);
    nearest = select(nearest, (int16)(c), closer);
  }
  vstore16(nearest, i, out);
}
#endif
