// Stands in for helper_math.h of NVIDIA's samples: operators and functions of CUDA's vector types.
#pragma once
#include <cmath>
#include <cuda_runtime.h>

typedef unsigned int uint;
typedef unsigned short ushort;

#define TIR_SCHEDULES_INLINE inline __host__ __device__

TIR_SCHEDULES_INLINE float lerp(float a, float b, float t) { return a + t * (b - a); }
TIR_SCHEDULES_INLINE float clamp(float x, float low, float high) { return fmaxf(low, fminf(x, high)); }
TIR_SCHEDULES_INLINE int clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
TIR_SCHEDULES_INLINE uint clamp(uint x, uint low, uint high) { return x < low ? low : x > high ? high : x; }
TIR_SCHEDULES_INLINE float smoothstep(float a, float b, float x) {
  const float y = clamp((x - a) / (b - a), 0.0f, 1.0f);
  return y * y * (3.0f - 2.0f * y);
}

// Each macro is given the scalar type T, the name of the vector type, and E, which applies a macro to each of
// its members and puts commas between the results.
#define TIR_SCHEDULES_2(F) F(x), F(y)
#define TIR_SCHEDULES_3(F) F(x), F(y), F(z)
#define TIR_SCHEDULES_4(F) F(x), F(y), F(z), F(w)

#define TIR_SCHEDULES_BINARY(T, V, EACH, OP, BOTH, LEFT, RIGHT)                                     \
  TIR_SCHEDULES_INLINE V operator OP(V a, V b) { return make_##V(EACH(BOTH)); }                     \
  TIR_SCHEDULES_INLINE V operator OP(V a, T b) { return make_##V(EACH(LEFT)); }                     \
  TIR_SCHEDULES_INLINE V operator OP(T a, V b) { return make_##V(EACH(RIGHT)); }                    \
  TIR_SCHEDULES_INLINE void operator OP##=(V &a, V b) { a = a OP b; }                               \
  TIR_SCHEDULES_INLINE void operator OP##=(V &a, T b) { a = a OP b; }

#define TIR_SCHEDULES_ADD(m) a.m + b.m
#define TIR_SCHEDULES_ADD_LEFT(m) a.m + b
#define TIR_SCHEDULES_ADD_RIGHT(m) a + b.m
#define TIR_SCHEDULES_SUB(m) a.m - b.m
#define TIR_SCHEDULES_SUB_LEFT(m) a.m - b
#define TIR_SCHEDULES_SUB_RIGHT(m) a - b.m
#define TIR_SCHEDULES_MUL(m) a.m * b.m
#define TIR_SCHEDULES_MUL_LEFT(m) a.m * b
#define TIR_SCHEDULES_MUL_RIGHT(m) a * b.m
#define TIR_SCHEDULES_DIV(m) a.m / b.m
#define TIR_SCHEDULES_DIV_LEFT(m) a.m / b
#define TIR_SCHEDULES_DIV_RIGHT(m) a / b.m
#define TIR_SCHEDULES_SAME(m) s
#define TIR_SCHEDULES_CLAMP(m) clamp(v.m, a.m, b.m)
#define TIR_SCHEDULES_CLAMP_ALL(m) clamp(v.m, a, b)
#define TIR_SCHEDULES_NEGATIVE(m) -a.m
#define TIR_SCHEDULES_FMIN(m) fminf(a.m, b.m)
#define TIR_SCHEDULES_FMAX(m) fmaxf(a.m, b.m)
#define TIR_SCHEDULES_FLOOR(m) floorf(v.m)
#define TIR_SCHEDULES_FABS(m) fabsf(v.m)
#define TIR_SCHEDULES_FRACTION(m) v.m - floorf(v.m)
#define TIR_SCHEDULES_FMOD(m) fmodf(a.m, b.m)
#define TIR_SCHEDULES_MIN(m) min(a.m, b.m)
#define TIR_SCHEDULES_MAX(m) max(a.m, b.m)
#define TIR_SCHEDULES_ABS(m) abs(v.m)
#define TIR_SCHEDULES_SMOOTH(m) smoothstep(a.m, b.m, v.m)

#define TIR_SCHEDULES_ANY(T, V, EACH)                                                                          \
  TIR_SCHEDULES_INLINE V make_##V(T s) { return make_##V(EACH(TIR_SCHEDULES_SAME)); }                          \
  TIR_SCHEDULES_BINARY(T, V, EACH, +, TIR_SCHEDULES_ADD, TIR_SCHEDULES_ADD_LEFT, TIR_SCHEDULES_ADD_RIGHT)      \
  TIR_SCHEDULES_BINARY(T, V, EACH, -, TIR_SCHEDULES_SUB, TIR_SCHEDULES_SUB_LEFT, TIR_SCHEDULES_SUB_RIGHT)      \
  TIR_SCHEDULES_BINARY(T, V, EACH, *, TIR_SCHEDULES_MUL, TIR_SCHEDULES_MUL_LEFT, TIR_SCHEDULES_MUL_RIGHT)      \
  TIR_SCHEDULES_BINARY(T, V, EACH, /, TIR_SCHEDULES_DIV, TIR_SCHEDULES_DIV_LEFT, TIR_SCHEDULES_DIV_RIGHT)      \
  TIR_SCHEDULES_INLINE V clamp(V v, T a, T b) { return make_##V(EACH(TIR_SCHEDULES_CLAMP_ALL)); }              \
  TIR_SCHEDULES_INLINE V clamp(V v, V a, V b) { return make_##V(EACH(TIR_SCHEDULES_CLAMP)); }

#define TIR_SCHEDULES_SIGNED(V, EACH)                                                                          \
  TIR_SCHEDULES_INLINE V operator-(const V &a) { return make_##V(EACH(TIR_SCHEDULES_NEGATIVE)); }

#define TIR_SCHEDULES_WHOLE(V, EACH)                                                                           \
  TIR_SCHEDULES_INLINE V min(V a, V b) { return make_##V(EACH(TIR_SCHEDULES_MIN)); }                           \
  TIR_SCHEDULES_INLINE V max(V a, V b) { return make_##V(EACH(TIR_SCHEDULES_MAX)); }

#define TIR_SCHEDULES_REAL(V, EACH)                                                                            \
  TIR_SCHEDULES_INLINE V fminf(V a, V b) { return make_##V(EACH(TIR_SCHEDULES_FMIN)); }                        \
  TIR_SCHEDULES_INLINE V fmaxf(V a, V b) { return make_##V(EACH(TIR_SCHEDULES_FMAX)); }                        \
  TIR_SCHEDULES_INLINE V floorf(V v) { return make_##V(EACH(TIR_SCHEDULES_FLOOR)); }                           \
  TIR_SCHEDULES_INLINE V fabs(V v) { return make_##V(EACH(TIR_SCHEDULES_FABS)); }                              \
  TIR_SCHEDULES_INLINE V fracf(V v) { return make_##V(EACH(TIR_SCHEDULES_FRACTION)); }                         \
  TIR_SCHEDULES_INLINE V fmodf(V a, V b) { return make_##V(EACH(TIR_SCHEDULES_FMOD)); }                        \
  TIR_SCHEDULES_INLINE V lerp(V a, V b, float t) { return a + t * (b - a); }                                   \
  TIR_SCHEDULES_INLINE V smoothstep(V a, V b, V v) { return make_##V(EACH(TIR_SCHEDULES_SMOOTH)); }            \
  TIR_SCHEDULES_INLINE float length(V v) { return sqrtf(dot(v, v)); }                                          \
  TIR_SCHEDULES_INLINE V normalize(V v) { return v * rsqrtf(dot(v, v)); }                                      \
  TIR_SCHEDULES_INLINE V reflect(V i, V n) { return i - 2.0f * n * dot(n, i); }

#define TIR_SCHEDULES_DOT(T, NAME)                                                                             \
  TIR_SCHEDULES_INLINE T dot(NAME##2 a, NAME##2 b) { return a.x * b.x + a.y * b.y; }                           \
  TIR_SCHEDULES_INLINE T dot(NAME##3 a, NAME##3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }               \
  TIR_SCHEDULES_INLINE T dot(NAME##4 a, NAME##4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

// Longer vectors of shorter ones, shorter of longer ones, and of other scalars.
#define TIR_SCHEDULES_RESHAPED(T, NAME)                                                                        \
  TIR_SCHEDULES_INLINE NAME##2 make_##NAME##2(NAME##3 a) { return make_##NAME##2(a.x, a.y); }                  \
  TIR_SCHEDULES_INLINE NAME##3 make_##NAME##3(NAME##2 a) { return make_##NAME##3(a.x, a.y, T(0)); }            \
  TIR_SCHEDULES_INLINE NAME##3 make_##NAME##3(NAME##2 a, T s) { return make_##NAME##3(a.x, a.y, s); }          \
  TIR_SCHEDULES_INLINE NAME##3 make_##NAME##3(NAME##4 a) { return make_##NAME##3(a.x, a.y, a.z); }             \
  TIR_SCHEDULES_INLINE NAME##4 make_##NAME##4(NAME##3 a) { return make_##NAME##4(a.x, a.y, a.z, T(0)); }       \
  TIR_SCHEDULES_INLINE NAME##4 make_##NAME##4(NAME##3 a, T s) { return make_##NAME##4(a.x, a.y, a.z, s); }
#define TIR_SCHEDULES_CONVERTED(NAME, T, OTHER)                                                                \
  TIR_SCHEDULES_INLINE NAME##2 make_##NAME##2(OTHER##2 a) { return make_##NAME##2(T(a.x), T(a.y)); }           \
  TIR_SCHEDULES_INLINE NAME##3 make_##NAME##3(OTHER##3 a) { return make_##NAME##3(T(a.x), T(a.y), T(a.z)); }   \
  TIR_SCHEDULES_INLINE NAME##4 make_##NAME##4(OTHER##4 a) {                                                    \
    return make_##NAME##4(T(a.x), T(a.y), T(a.z), T(a.w));                                                     \
  }

#define TIR_SCHEDULES_VECTORS(T, NAME)                                                                         \
  TIR_SCHEDULES_ANY(T, NAME##2, TIR_SCHEDULES_2)                                                               \
  TIR_SCHEDULES_ANY(T, NAME##3, TIR_SCHEDULES_3)                                                               \
  TIR_SCHEDULES_ANY(T, NAME##4, TIR_SCHEDULES_4)                                                               \
  TIR_SCHEDULES_DOT(T, NAME)                                                                                   \
  TIR_SCHEDULES_RESHAPED(T, NAME)

TIR_SCHEDULES_VECTORS(float, float)
TIR_SCHEDULES_VECTORS(int, int)
TIR_SCHEDULES_VECTORS(uint, uint)
TIR_SCHEDULES_CONVERTED(float, float, int)
TIR_SCHEDULES_CONVERTED(float, float, uint)
TIR_SCHEDULES_CONVERTED(int, int, float)
TIR_SCHEDULES_CONVERTED(int, int, uint)
TIR_SCHEDULES_CONVERTED(uint, uint, int)
TIR_SCHEDULES_SIGNED(float2, TIR_SCHEDULES_2)
TIR_SCHEDULES_SIGNED(float3, TIR_SCHEDULES_3)
TIR_SCHEDULES_SIGNED(float4, TIR_SCHEDULES_4)
TIR_SCHEDULES_SIGNED(int2, TIR_SCHEDULES_2)
TIR_SCHEDULES_SIGNED(int3, TIR_SCHEDULES_3)
TIR_SCHEDULES_SIGNED(int4, TIR_SCHEDULES_4)
TIR_SCHEDULES_REAL(float2, TIR_SCHEDULES_2)
TIR_SCHEDULES_REAL(float3, TIR_SCHEDULES_3)
TIR_SCHEDULES_REAL(float4, TIR_SCHEDULES_4)
TIR_SCHEDULES_WHOLE(int2, TIR_SCHEDULES_2)
TIR_SCHEDULES_WHOLE(int3, TIR_SCHEDULES_3)
TIR_SCHEDULES_WHOLE(int4, TIR_SCHEDULES_4)
TIR_SCHEDULES_WHOLE(uint2, TIR_SCHEDULES_2)
TIR_SCHEDULES_WHOLE(uint3, TIR_SCHEDULES_3)
TIR_SCHEDULES_WHOLE(uint4, TIR_SCHEDULES_4)

TIR_SCHEDULES_INLINE float3 cross(float3 a, float3 b) {
  return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
