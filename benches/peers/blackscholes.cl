// Hand-written kernels for programs/blackscholes.pat: the plain one, an option for each work-item, in two
// sizes of work-groups, and one that works on sixteen options at a time.

float cnd(float d) {
  float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
  float v = 0.39894228040143267794f * exp(-0.5f * d * d) *
            (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - v : v;
}

// peer: plain for blackscholes
// launch: blackscholes_plain global=n/64*64 local=64 args=S,X,T,R,V,out.0,out.1
// peer: plain, groups of 256 for blackscholes
// launch: blackscholes_plain global=n/256*256 local=256 args=S,X,T,R,V,out.0,out.1
kernel void blackscholes_plain(global const float *restrict S, global const float *restrict X,
                               global const float *restrict T, const float R, const float V,
                               global float *restrict call, global float *restrict put) {
  size_t i = get_global_id(0);
  float s = S[i], x = X[i], t = T[i];
  float q = sqrt(t);
  float d1 = (log(s / x) + (R + 0.5f * V * V) * t) / (V * q), d2 = d1 - V * q;
  float n1 = cnd(d1), n2 = cnd(d2), e = exp(-R * t);
  call[i] = s * n1 - x * e * n2;
  put[i] = x * e * (1.0f - n2) - s * (1.0f - n1);
}

float16 cnd16(float16 d) {
  float16 k = 1.0f / (1.0f + 0.2316419f * fabs(d));
  float16 v = 0.39894228040143267794f * exp(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return select(v, 1.0f - v, d > 0);
}

// peer: float16 for blackscholes
// launch: blackscholes_vector global=n/1024*64 local=64 args=S,X,T,R,V,out.0,out.1
kernel void blackscholes_vector(global const float16 *restrict S, global const float16 *restrict X,
                                global const float16 *restrict T, const float R, const float V,
                                global float16 *restrict call, global float16 *restrict put) {
  size_t i = get_global_id(0);
  float16 s = S[i], x = X[i], t = T[i];
  float16 q = sqrt(t);
  float16 d1 = (log(s / x) + (R + 0.5f * V * V) * t) / (V * q), d2 = d1 - V * q;
  float16 n1 = cnd16(d1), n2 = cnd16(d2), e = exp(-R * t);
  call[i] = s * n1 - x * e * n2;
  put[i] = x * e * (1.0f - n2) - s * (1.0f - n1);
}
