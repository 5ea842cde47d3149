// Products with weights in 8 bits, by rows.h: a weight is a whole number from -127 to 127 times the scale of its 32 neighbours.
//
// What they are multiplied with is rounded to 16 bits, each 32 numbers by a scale of their own: to 1/65534 of the largest of them,
// where bfloat16 would round each number to 1/512 of itself. So the sums of 32 products are exact, in whole numbers, and a register
// holds twice the numbers that it holds as floats.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

// A row of a matrix: `in` weights, then a scale in bfloat16 for each GROUP of them.
struct Int8 {
    using type = uint8_t;
    static constexpr int64_t GROUP = 32, TOKENS = 8;
    static int64_t row(int64_t in) { return in + in / GROUP * 2; }
};

// x (size,) in 16 bits, then the scale of each group; together shorter than x.
inline void arrange(Int8, const float* x, float* y, int64_t size) {
    auto* whole = reinterpret_cast<int16_t*>(y);
    float* scales = y + size / 2;
    for (int64_t i = 0; i < size; i += Int8::GROUP) {
        float top = 0;
        for (int64_t j = 0; j < Int8::GROUP; j++) top = std::max(top, std::fabs(x[i + j]));
        const float inverse = top > 0 ? 32767 / top : 0;
        for (int64_t j = 0; j < Int8::GROUP; j++) {
            const float scaled = x[i + j] * inverse;
            whole[i + j] = static_cast<int16_t>(static_cast<int32_t>(scaled + (scaled < 0 ? -0.5f : 0.5f)));
        }
        scales[i / Int8::GROUP] = top / 32767;
    }
}

// A group of weights, widened once for all rows of X. Registers of 512 bits are no faster here (measured on a Zen 4).
struct Group {
#if defined(__AVX2__) && defined(__FMA__)
    using Sum = __m256;
    __m256i first, second;
    __m256 scale;
    Group(const uint8_t* w, const uint16_t* s)
        : first(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)))),
          second(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 16)))),
          scale(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_set1_epi16(static_cast<int16_t>(*s)), 16))) {}
    static Sum zero() { return _mm256_setzero_ps(); }
    void add(const int16_t* x, float of_x, Sum& sum) const {
        const auto* at = reinterpret_cast<const __m256i*>(x);
        const __m256i products = _mm256_add_epi32(_mm256_madd_epi16(first, _mm256_loadu_si256(at)),
                                                  _mm256_madd_epi16(second, _mm256_loadu_si256(at + 1)));
        sum = _mm256_fmadd_ps(_mm256_mul_ps(scale, _mm256_set1_ps(of_x)), _mm256_cvtepi32_ps(products), sum);
    }
    static float total(Sum sum) {
        float parts[8], found = 0;
        _mm256_storeu_ps(parts, sum);
        for (float part : parts) found += part;
        return found;
    }
#else
    using Sum = float;
    int16_t weights[Int8::GROUP];
    float scale;
    Group(const uint8_t* w, const uint16_t* s) {
        for (int64_t j = 0; j < Int8::GROUP; j++) weights[j] = static_cast<int8_t>(w[j]);
        const uint32_t bits = static_cast<uint32_t>(*s) << 16;
        std::memcpy(&scale, &bits, sizeof scale);
    }
    static Sum zero() { return 0; }
    void add(const int16_t* x, float of_x, Sum& sum) const {
        int32_t products = 0;
        for (int64_t j = 0; j < Int8::GROUP; j++) products += static_cast<int32_t>(weights[j]) * x[j];
        sum += scale * of_x * static_cast<float>(products);
    }
    static float total(Sum sum) { return sum; }
#endif
};

// The products of a row of W with N rows of X, (N,); rows of X are `in` floats apart.
template <int N>
void dots(Int8, const uint8_t* w, const float* x, int64_t in, float* found) {
    Group::Sum sums[N];
    for (auto& sum : sums) sum = Group::zero();
    const auto* scales = reinterpret_cast<const uint16_t*>(w + in);
    for (int64_t g = 0; g < in / Int8::GROUP; g++) {
        const Group group(w + g * Int8::GROUP, scales + g);
        __builtin_prefetch(w + g * Int8::GROUP + AHEAD);
        for (int t = 0; t < N; t++) {
            const float* row = x + t * in;
            group.add(reinterpret_cast<const int16_t*>(row) + g * Int8::GROUP, row[in / 2 + g], sums[t]);
        }
    }
    for (int t = 0; t < N; t++) found[t] = Group::total(sums[t]);
}
