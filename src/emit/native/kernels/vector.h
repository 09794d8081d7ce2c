#pragma once

// Vectors of the widest kind that the compiler may use (-march=native, or -mavx512f and the like), in three
// spellings: AVX-512, AVX2 with FMA, and whatever the compiler makes of 16 bytes. Kernels are written once,
// in these few words.
//
// The inline namespace has the name of the instruction set: several of them can be linked into one program,
// as the tests do, and no function compiled for one is taken for that of another.

#include <cstdint>
#include <cstring>

#if __has_include(<immintrin.h>)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define NATIVE_ISA avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define NATIVE_ISA avx2
#else
#define NATIVE_ISA portable
#endif
#define NATIVE_TEXT_OF(name) #name
#define NATIVE_TEXT(name) NATIVE_TEXT_OF(name)
#define NATIVE_INLINE inline __attribute__((always_inline))

namespace native {
inline namespace NATIVE_ISA {

inline constexpr const char* kIsa = NATIVE_TEXT(NATIVE_ISA);

// Lanes<T>: V, a vector of kLanes numbers. `part` counts the lanes that exist: the others are neither read
// nor written, and read as 0.
template <typename T>
struct Lanes;

#if defined(__AVX512F__)

inline constexpr int kRegisters = 32;

template <>
struct Lanes<float> {
  using V = __m512;
  static constexpr int64_t kLanes = 16;
  static __mmask16 mask(int64_t part) { return static_cast<__mmask16>((1u << part) - 1); }
  static V zero() { return _mm512_setzero_ps(); }
  static V all(float value) { return _mm512_set1_ps(value); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static V load(const float* p, int64_t part) { return _mm512_maskz_loadu_ps(mask(part), p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static void store(float* p, V v, int64_t part) { _mm512_mask_storeu_ps(p, mask(part), v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V max(V a, V b) { return _mm512_maskz_max_ps(static_cast<__mmask16>(-1), a, b); }
  // v where m > 0, elsewhere 0.
  static V where_positive(V m, V v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(m, zero(), _CMP_GT_OQ), v);
  }
};

template <>
struct Lanes<double> {
  using V = __m512d;
  static constexpr int64_t kLanes = 8;
  static __mmask8 mask(int64_t part) { return static_cast<__mmask8>((1u << part) - 1); }
  static V zero() { return _mm512_setzero_pd(); }
  static V all(double value) { return _mm512_set1_pd(value); }
  static V load(const double* p) { return _mm512_loadu_pd(p); }
  static V load(const double* p, int64_t part) { return _mm512_maskz_loadu_pd(mask(part), p); }
  static void store(double* p, V v) { _mm512_storeu_pd(p, v); }
  static void store(double* p, V v, int64_t part) { _mm512_mask_storeu_pd(p, mask(part), v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  static V add(V a, V b) { return _mm512_add_pd(a, b); }
  static V max(V a, V b) { return _mm512_maskz_max_pd(static_cast<__mmask8>(-1), a, b); }
  static V where_positive(V m, V v) {
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(m, zero(), _CMP_GT_OQ), v);
  }
};

#elif defined(__AVX2__) && defined(__FMA__)

inline constexpr int kRegisters = 16;

template <>
struct Lanes<float> {
  using V = __m256;
  static constexpr int64_t kLanes = 8;
  static __m256i mask(int64_t part) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(part)), lane);
  }
  static V zero() { return _mm256_setzero_ps(); }
  static V all(float value) { return _mm256_set1_ps(value); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static V load(const float* p, int64_t part) { return _mm256_maskload_ps(p, mask(part)); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, V v, int64_t part) { _mm256_maskstore_ps(p, mask(part), v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  static V where_positive(V m, V v) { return _mm256_and_ps(_mm256_cmp_ps(m, zero(), _CMP_GT_OQ), v); }
};

template <>
struct Lanes<double> {
  using V = __m256d;
  static constexpr int64_t kLanes = 4;
  static __m256i mask(int64_t part) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(part), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static V zero() { return _mm256_setzero_pd(); }
  static V all(double value) { return _mm256_set1_pd(value); }
  static V load(const double* p) { return _mm256_loadu_pd(p); }
  static V load(const double* p, int64_t part) { return _mm256_maskload_pd(p, mask(part)); }
  static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  static void store(double* p, V v, int64_t part) { _mm256_maskstore_pd(p, mask(part), v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static V max(V a, V b) { return _mm256_max_pd(a, b); }
  static V where_positive(V m, V v) { return _mm256_and_pd(_mm256_cmp_pd(m, zero(), _CMP_GT_OQ), v); }
};

#else

inline constexpr int kRegisters = 13;  // of 16: a product needs room before it is added, and a zero

template <typename T>
struct Lanes {
  typedef T V __attribute__((vector_size(16)));
  static constexpr int64_t kLanes = 16 / sizeof(T);
  static V zero() { return V{}; }
  static V all(T value) { return value - V{}; }  // folded, as value + 0 is not: -0 + 0 is 0
  static V load(const T* p) { return load(p, kLanes); }
  static V load(const T* p, int64_t part) {
    V v = {};
    std::memcpy(&v, p, static_cast<size_t>(part) * sizeof(T));
    return v;
  }
  static void store(T* p, V v) { store(p, v, kLanes); }
  static void store(T* p, V v, int64_t part) { std::memcpy(p, &v, static_cast<size_t>(part) * sizeof(T)); }
  static V fma(V a, V b, V c) { return a * b + c; }
  static V add(V a, V b) { return a + b; }
  static V max(V a, V b) { return a > b ? a : b; }
  static V where_positive(V m, V v) { return m > V{} ? v : V{}; }
};

#endif

}  // namespace NATIVE_ISA
}  // namespace native
