// What decoding and training have in common: the operations between matrix products, for one token or head at a time, in float32.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

// The matrix product of BLAS, found in PyTorch's library. It counts by columns: our matrices are transposed to it.
using Sgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
                       const float*, const int*, const float*, float*, const int*);

struct Matmul {
    Sgemm sgemm;

    // C (n, out) = X (n, in) W^T + add C, of a matrix W (out, in).
    void forward(const float* x, const float* w, float* c, int n, int in, int out, float add) const {
        const float one = 1;
        sgemm("T", "N", &out, &n, &in, &one, w, &in, x, &in, &add, c, &out);
    }
    // G_x (n, in) = G (n, out) W.
    void by_input(const float* g, const float* w, float* g_x, int n, int in, int out) const {
        const float one = 1, zero = 0;
        sgemm("N", "N", &in, &n, &out, &one, w, &in, g, &out, &zero, g_x, &in);
    }
    // G_w (out, in) += G^T X.
    void by_weight(const float* g, const float* x, float* g_w, int n, int in, int out) const {
        const float one = 1;
        sgemm("N", "T", &in, &out, &n, &one, x, &in, g, &out, &one, g_w, &in);
    }
};

// Tokens whose activations stay in the processor's cache from one operation to the next.
constexpr int64_t BLOCK = 256;
// Numbers that an operation of the processor handles at once: sums and maxima run in so many strands.
constexpr int LANES = 8;

// Calls f with the size of a head as a constant, so that a head stays in registers. Nothing for other sizes.
template <class F>
void with_head_size(int64_t d, F f) {
    switch (d) {
        case 8: f(std::integral_constant<int, 8>{}); break;
        case 32: f(std::integral_constant<int, 32>{}); break;
        case 64: f(std::integral_constant<int, 64>{}); break;
        case 128: f(std::integral_constant<int, 128>{}); break;
        default: break;
    }
}

// e^x by a power of two and a polynomial (Cephes, relative error 1e-7): a loop over it vectorises.
inline float fast_exp(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float n = std::floor(x * 1.44269504f + 0.5f);
    const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

inline float rms_scale(const float* x, int64_t size, double eps) {
    float sum = 0;
    for (int64_t i = 0; i < size; i++) sum += x[i] * x[i];
    return 1.0f / std::sqrt(sum / size + static_cast<float>(eps));
}

// y = norm(x), times a weight if there is one.
inline void rms_norm(const float* x, const float* weight, float* y, int64_t size, double eps) {
    const float scale = rms_scale(x, size, eps);
    if (weight)
        for (int64_t i = 0; i < size; i++) y[i] = x[i] * scale * weight[i];
    else
        for (int64_t i = 0; i < size; i++) y[i] = x[i] * scale;
}

// Rotary position embedding of one head, in place; `sin` carries the sign of its first half.
inline void rotate(float* x, const float* cos, const float* sin, int64_t d) {
    const int64_t half = d / 2;
    for (int64_t i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half];
        x[i] = a * cos[i] + b * sin[i];
        x[i + half] = b * cos[i + half] + a * sin[i + half];
    }
}

// silu(gate) * up, of one token whose gate and up (size,) follow each other.
inline void silu_product(const float* __restrict both, float* __restrict out, int64_t size) {
    for (int64_t i = 0; i < size; i++) out[i] = both[i] * sigmoid(both[i]) * both[size + i];
}

// The keys that a token sees: of its own text, and before that of a prompt that several texts share. Indices, the end excluded.
struct Seen {
    int64_t prompt, prompt_end, begin, end;
};

// Scores become e^(score - max); returns their sum, and the logarithm of the sum of e^score. Room for n + LANES scores.
inline float exponentials(float* scores, int64_t n, float* lse) {
    std::fill(scores + n, scores + n + LANES, -1e30f);  // of weight 0
    float tops[LANES], totals[LANES] = {}, total = 0;
    std::copy_n(scores, LANES, tops);
    for (int64_t j = 0; j < n; j += LANES)
        for (int l = 0; l < LANES; l++) tops[l] = std::max(tops[l], scores[j + l]);
    const float top = *std::max_element(tops, tops + LANES);
    for (int64_t j = 0; j < n; j += LANES)
        for (int l = 0; l < LANES; l++) totals[l] += scores[j + l] = fast_exp(scores[j + l] - top);
    for (float t : totals) total += t;
    *lse = top + std::log(total);
    return total;
}

// Attention of one head of D numbers. Keys and values are `stride` floats apart.
template <int D>
struct Head {
    const float *keys, *values;
    int64_t stride;
    Seen seen;

    // f(index of a key, its number among those seen)
    template <class F>
    void each(F f) const {
        int64_t n = 0;
        for (int64_t j = seen.prompt; j < seen.prompt_end; j++) f(j, n++);
        for (int64_t j = seen.begin; j < seen.end; j++) f(j, n++);
    }
    int64_t count() const { return seen.prompt_end - seen.prompt + seen.end - seen.begin; }

    static float dot(const float* a, const float* b) {
        float sum = 0;
        for (int i = 0; i < D; i++) sum += a[i] * b[i];
        return sum;
    }

    void forward(const float* q, float* scores, float* out, float* lse) const {
        each([&](int64_t j, int64_t n) { scores[n] = dot(q, keys + j * stride); });
        const float total = exponentials(scores, count(), lse);
        float sum[D] = {};
        each([&](int64_t j, int64_t n) {
            for (int i = 0; i < D; i++) sum[i] += scores[n] * values[j * stride + i];
        });
        for (int i = 0; i < D; i++) out[i] = sum[i] / total;
    }

    // With p = e^(q k - lse) and out = sum p v:  dv += p do,  ds = p (do v - do out),  dq = sum ds k,  dk += ds q.
    void backward(const float* q, float lse, const float* out, const float* d_out, float* scores, float* dq, float* d_keys,
                  float* d_values) const {
        each([&](int64_t j, int64_t n) { scores[n] = dot(q, keys + j * stride) - lse; });
        for (int64_t j = 0; j < count(); j++) scores[j] = fast_exp(scores[j]);
        float query[D], g[D], sum[D] = {};
        std::copy_n(q, D, query);
        std::copy_n(d_out, D, g);
        const float through = dot(g, out);
        each([&](int64_t j, int64_t n) {
            const float p = scores[n], ds = p * (dot(g, values + j * stride) - through);
            float *dk = d_keys + j * stride, *dv = d_values + j * stride;
            for (int i = 0; i < D; i++) sum[i] += ds * keys[j * stride + i];
            for (int i = 0; i < D; i++) dk[i] += ds * query[i];
            for (int i = 0; i < D; i++) dv[i] += p * g[i];
        });
        for (int i = 0; i < D; i++) dq[i] += sum[i];
    }
};
