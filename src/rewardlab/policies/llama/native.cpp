// A forward pass of the lean policy over a cache of keys and values, in float32: prefill and decoding of small models on CPUs.
//
// An operation of a small model takes less time than PyTorch takes to start it and to write out its result. Here everything
// between two matrix products happens while a row is in the processor's cache. The products are those of PyTorch's own library.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

extern "C" {

// The matrix product of BLAS, found in PyTorch's library.
using Sgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
                       const float*, const int*, const float*, float*, const int*);

// Matrices are (out, in), row by row, with the norms' weights and attention's scale multiplied into them (`fold`).
struct Layer {
    const float *qkv, *qkv_bias, *q_norm, *k_norm;  // the bias and norms may be null
    const float *out, *gate_up, *down;
};

struct Model {
    Sgemm sgemm;
    int64_t hidden, heads, kv_heads, head_dim, mlp, vocab, layers;
    double eps;
    const float *embed, *head, *cos, *sin;  // cos and sin: (context, head_dim), sin with the sign of the rotation
    const Layer* layer;
};
}

namespace {

// C (n, out) = x (n, in) W^T + add C; BLAS counts by columns, so it computes the transpose.
void product(const Model& m, const float* x, const float* w, float* c, int n, int in, int out, float add) {
    const float one = 1;
    m.sgemm("T", "N", &out, &n, &in, &one, w, &in, x, &in, &add, c, &out);
}

// e^x for x <= 0 and moderate x > 0, by powers of two and a polynomial (Cephes, relative error 1e-7): a loop over it vectorises.
inline float fast_exp(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = std::floor(x * 1.44269504f + 0.5f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

void rms_norm(const float* x, const float* weight, float* y, int64_t size, double eps) {
    float sum = 0;
    for (int64_t i = 0; i < size; i++) sum += x[i] * x[i];
    const float scale = 1.0f / std::sqrt(sum / size + static_cast<float>(eps));
    for (int64_t i = 0; i < size; i++) y[i] = x[i] * scale * (weight ? weight[i] : 1.0f);
}

// Rotary position embedding of one head, in place.
void rotate(float* x, const float* cos, const float* sin, int64_t d) {
    const int64_t half = d / 2;
    for (int64_t i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half];
        x[i] = a * cos[i] + b * sin[i];
        x[i + half] = b * cos[i + half] + a * sin[i + half];
    }
}

// Numbers that an operation of the processor handles at once: sums and maxima run in so many strands.
constexpr int LANES = 8;

// out = softmax(q . keys) values, of one head over its first n positions; keys and values (n, d).
// scores: (n,) for working, and LANES more.  D: d, or 0 for sizes that the compiler does not know beforehand.

template <int D>
void attend(const float* q, const float* keys, const float* values, float* scores, float* out, int64_t n, int64_t size) {
    const int64_t d = D ? D : size;
    for (int64_t j = 0; j < n; j++) {
        float dot = 0;
        for (int64_t i = 0; i < d; i++) dot += q[i] * keys[j * d + i];
        scores[j] = dot;
    }
    std::fill(scores + n, scores + n + LANES, -1e30f);  // of weight 0
    float tops[LANES], totals[LANES] = {};
    std::copy_n(scores, LANES, tops);
    for (int64_t j = 0; j < n; j += LANES)
        for (int l = 0; l < LANES; l++) tops[l] = tops[l] > scores[j + l] ? tops[l] : scores[j + l];
    const float top = *std::max_element(tops, tops + LANES);
    for (int64_t j = 0; j < n; j += LANES)
        for (int l = 0; l < LANES; l++) totals[l] += scores[j + l] = fast_exp(scores[j + l] - top);
    float sums[D ? D : 1] = {}, total = 0;
    for (float t : totals) total += t;
    float* const sum = D ? sums : out;  // a small array of its own stays in registers
    if (!D) std::fill(out, out + d, 0.0f);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < d; i++) sum[i] += scores[j] * values[j * d + i];
    for (int64_t i = 0; i < d; i++) out[i] = sum[i] / total;
}

// Tokens whose activations stay in the processor's cache from one operation to the next.
constexpr int64_t BLOCK = 256;

int64_t scratch_per_token(const Model& m) {
    return 2 * m.hidden + (2 * m.heads + 2 * m.kv_heads) * m.head_dim + 3 * m.mlp;
}

struct Cache {
    float** layers;  // of each layer (2, slots, Hkv, span, d), keys and values
    int64_t slots, span;
};

// Norm and rotate the heads in `qkv` of one token, in place, and store its keys and values.
void write_keys(const Model& m, const Layer& w, const Cache& cache, float* table, float* qkv, int64_t slot, int64_t position) {
    const int64_t d = m.head_dim, rotated = m.heads + m.kv_heads;
    if (w.qkv_bias)
        for (int64_t i = 0; i < (rotated + m.kv_heads) * d; i++) qkv[i] += w.qkv_bias[i];
    for (int64_t h = 0; h < rotated; h++) {
        float* x = qkv + h * d;
        const float* norm = h < m.heads ? w.q_norm : w.k_norm;
        if (norm) rms_norm(x, norm, x, d, m.eps);
        rotate(x, m.cos + position * d, m.sin + position * d, d);
    }
    for (int64_t h = 0; h < 2 * m.kv_heads; h++) {
        const int64_t row = (h / m.kv_heads * cache.slots + slot) * m.kv_heads + h % m.kv_heads;
        std::memcpy(table + (row * cache.span + position) * d, qkv + (m.heads + h) * d, d * sizeof(float));
    }
}

// Attention of all heads of one token.
void attend_all(const Model& m, const Cache& cache, const float* table, const float* q, float* scores, float* out, int64_t slot,
                int64_t position) {
    const int64_t d = m.head_dim, share = m.heads / m.kv_heads, values = cache.slots * m.kv_heads * cache.span * d;
    const auto one = d == 32 ? attend<32> : d == 64 ? attend<64> : d == 128 ? attend<128> : attend<0>;
    for (int64_t h = 0; h < m.heads; h++) {
        const float* keys = table + (slot * m.kv_heads + h / share) * cache.span * d;
        one(q + h * d, keys, keys + values, scores, out + h * d, position + 1, d);
    }
}

// One block of tokens through all layers. Without `logits` the last layer ends with its keys and values: nothing reads more.
void run_block(const Model& m, const Cache& cache, int64_t n, const int64_t* ids, const int64_t* slots, const int64_t* positions,
               float* scratch, float* logits) {
    const int64_t d = m.head_dim, width = (m.heads + 2 * m.kv_heads) * d;
    float *x = scratch, *y = x + n * m.hidden, *qkv = y + n * m.hidden, *a = qkv + n * width, *both = a + n * m.heads * d,
          *product_of = both + n * 2 * m.mlp, *scores = scratch + BLOCK * scratch_per_token(m);
    for (int64_t t = 0; t < n; t++) std::copy_n(m.embed + ids[t] * m.hidden, m.hidden, x + t * m.hidden);
    for (int64_t i = 0; i < m.layers; i++) {
        const Layer& w = m.layer[i];
        float* table = cache.layers[i];
        for (int64_t t = 0; t < n; t++) rms_norm(x + t * m.hidden, nullptr, y + t * m.hidden, m.hidden, m.eps);
        product(m, y, w.qkv, qkv, n, m.hidden, width, 0);
        for (int64_t t = 0; t < n; t++) write_keys(m, w, cache, table, qkv + t * width, slots[t], positions[t]);
        if (!logits && i == m.layers - 1) return;
        for (int64_t t = 0; t < n; t++)
            attend_all(m, cache, table, qkv + t * width, scores, a + t * m.heads * d, slots[t], positions[t]);
        product(m, a, w.out, x, n, m.heads * d, m.hidden, 1);
        for (int64_t t = 0; t < n; t++) rms_norm(x + t * m.hidden, nullptr, y + t * m.hidden, m.hidden, m.eps);
        product(m, y, w.gate_up, both, n, m.hidden, 2 * m.mlp, 0);
        for (int64_t t = 0; t < n; t++) {
            const float *gate = both + t * 2 * m.mlp, *up = gate + m.mlp;
            for (int64_t j = 0; j < m.mlp; j++) product_of[t * m.mlp + j] = gate[j] / (1.0f + fast_exp(-gate[j])) * up[j];
        }
        product(m, product_of, w.down, x, n, m.mlp, m.hidden, 1);
    }
    for (int64_t t = 0; t < n; t++) rms_norm(x + t * m.hidden, nullptr, y + t * m.hidden, m.hidden, m.eps);
    product(m, y, m.head, logits, n, m.hidden, m.vocab, 0);
}

}  // namespace

extern "C" {

// Floats of working memory that `forward` needs.
int64_t scratch_floats(const Model* m, int64_t span) { return BLOCK * scratch_per_token(*m) + span + LANES; }

// n tokens, each in the slot of a row at a position of it; a row's tokens come in order. Writes their keys and values into the
// cache, and their logits (n, vocab) unless `logits` is null.
void forward(const Model* m, float** layers, int64_t slots_in_cache, int64_t span, int64_t n, const int64_t* ids,
             const int64_t* slots, const int64_t* positions, float* scratch, float* logits) {
    const Cache cache{layers, slots_in_cache, span};
    for (int64_t t = 0; t < n; t += BLOCK) {
        float* const part = logits ? logits + t * m->vocab : nullptr;
        run_block(*m, cache, std::min(BLOCK, n - t), ids + t, slots + t, positions + t, scratch, part);
    }
}
}
